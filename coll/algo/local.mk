# Sources of coll/algo (libcoll.la) and the unit tests beside them.
COLL_SOURCES +=
