# Sources of coll/comm (libcoll.la) and the unit tests beside them.
COLL_SOURCES +=
