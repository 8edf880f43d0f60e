# Sources of coll/exec (libcoll.la) and the unit tests beside them.
COLL_SOURCES +=
