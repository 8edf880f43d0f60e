# Sources of coll/api (libcoll.la) and the unit tests beside them.
COLL_SOURCES += %D%/error.c %D%/error.h %D%/types.c

check_PROGRAMS += %D%/tests/test_types
TESTS += %D%/tests/test_types
%C%_tests_test_types_SOURCES = %D%/tests/test_types.c
%C%_tests_test_types_LDADD = coll/libcoll.la

COLL_SOURCES += %D%/call.c %D%/call.h %D%/check.c %D%/collectives.c \
	%D%/memo.c %D%/memo.h %D%/pair.c %D%/revoke.c %D%/shrink.c %D%/split.c %D%/vector.h %D%/vector.c %D%/collectives_v.c \
	%D%/device.h %D%/device.c %D%/dynamic.c %D%/graph.h %D%/graph.c \
	%D%/persist.h %D%/persist.c %D%/win.c %D%/bucket.c %D%/prefetch.c

# Not a test: what plain and persistent calls cost, for callgrind.
check_PROGRAMS += %D%/tests/bench_calls
%C%_tests_bench_calls_SOURCES = %D%/tests/bench_calls.c
%C%_tests_bench_calls_LDADD = coll/libcoll.la
