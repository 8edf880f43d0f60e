# The wire contract, and one folder per wire.
PROV_SOURCES += %D%/wire.h
include prov/wire/shm/local.mk
