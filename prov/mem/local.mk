# Sources of prov/mem (libprov.la) and the unit tests beside them.
PROV_SOURCES += %D%/params.c %D%/params.h
