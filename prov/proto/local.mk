# Sources of prov/proto (libprov.la) and the unit tests beside them.
PROV_SOURCES +=
