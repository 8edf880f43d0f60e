# Sources of coll/plan (libcoll.la) and the unit tests beside them.
COLL_SOURCES += %D%/plan.h %D%/plan.c %D%/builder.c %D%/validate.c %D%/print.c
EXTRA_DIST += %D%/README.md
