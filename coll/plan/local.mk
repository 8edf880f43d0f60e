# Sources of coll/plan (libcoll.la) and the unit tests beside them.
COLL_SOURCES +=
