# Sources of prov/peer (libprov.la) and the unit tests beside them.
PROV_SOURCES +=
