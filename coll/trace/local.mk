# Sources of coll/trace (libcoll.la) and the unit tests beside them.
COLL_SOURCES += %D%/recorder.h %D%/recorder.c %D%/dump.h %D%/dump.c \
	%D%/armed.h %D%/armed.c %D%/out_path.h %D%/out_path.c %D%/prom.h %D%/prom.c %D%/take.h %D%/take.c %D%/look.h %D%/look.c %D%/trace_file.h %D%/trace_file.c
EXTRA_DIST += %D%/README.md

check_PROGRAMS += %D%/tests/test_trace
TESTS += %D%/tests/test_trace
TEST_HELPERS += %D%/tests/test_trace
%C%_tests_test_trace_SOURCES = %D%/tests/test_trace.c coll/tests/ranks.c
%C%_tests_test_trace_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_crash
TESTS += %D%/tests/test_crash
%C%_tests_test_crash_SOURCES = %D%/tests/test_crash.c
%C%_tests_test_crash_LDADD = coll/libcoll.la

# Not a test: what an event costs (bench/trace).
check_PROGRAMS += %D%/tests/bench_trace
%C%_tests_bench_trace_SOURCES = %D%/tests/bench_trace.c
%C%_tests_bench_trace_LDADD = coll/libcoll.la
