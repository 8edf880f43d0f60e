# Sources of prov/fi (libprov.la) and the unit tests beside them.
PROV_SOURCES +=
