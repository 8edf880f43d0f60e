# Sources of prov/peer (libprov.la) and the unit tests beside them.
PROV_SOURCES += %D%/peer.c %D%/peer.h %D%/table.c
