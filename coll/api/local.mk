# Sources of coll/api (libcoll.la) and the unit tests beside them.
COLL_SOURCES += %D%/error.c %D%/error.h
