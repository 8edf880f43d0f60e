# Sources of the shared-memory wire and the unit tests beside them.
PROV_SOURCES +=
