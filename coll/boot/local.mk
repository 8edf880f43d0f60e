# Sources of coll/boot (libcoll.la) and the unit tests beside them.
COLL_SOURCES +=
