# The wire contract, and one folder per wire.
PROV_SOURCES += %D%/wire.h %D%/addr.c %D%/addr.h %D%/wires.c
include prov/wire/shm/local.mk
