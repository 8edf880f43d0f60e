# Sources of coll/comm (libcoll.la) and the unit tests beside them.
COLL_SOURCES += %D%/comm.c %D%/comm.h %D%/comm_plan.c %D%/comm_req.c %D%/ctx.c
