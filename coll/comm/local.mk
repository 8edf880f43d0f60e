# Sources of coll/comm (libcoll.la) and the unit tests beside them.
COLL_SOURCES += %D%/comm.c %D%/comm.h %D%/comm_plan.c %D%/comm_req.c %D%/ctx.c \
	%D%/dynamic.h %D%/dynamic.c \
	%D%/force.h %D%/force.c %D%/measure.h %D%/measure.c %D%/op.c %D%/op.h %D%/comm_nodes.c \
	%D%/progress.h %D%/progress.c %D%/stats.h %D%/stats.c

check_PROGRAMS += %D%/tests/test_force
TESTS += %D%/tests/test_force
%C%_tests_test_force_SOURCES = %D%/tests/test_force.c
%C%_tests_test_force_LDADD = coll/libcoll.la
