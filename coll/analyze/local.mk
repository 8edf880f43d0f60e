# Sources of coll/analyze (libcoll.la) and the unit tests beside them.
COLL_SOURCES += %D%/align.c %D%/clocks.h %D%/clocks.c %D%/job.h %D%/job.c %D%/link.h %D%/link.c \
	%D%/pace.h %D%/pace.c %D%/stuck.h %D%/stuck.c %D%/verdict.h %D%/verdict.c
EXTRA_DIST += %D%/README.md

check_PROGRAMS += %D%/tests/test_clocks %D%/tests/test_analyze
TESTS += %D%/tests/test_clocks %D%/tests/test_analyze
%C%_tests_test_clocks_SOURCES = %D%/tests/test_clocks.c
%C%_tests_test_clocks_LDADD = coll/libcoll.la -lm
%C%_tests_test_analyze_SOURCES = %D%/tests/test_analyze.c %D%/tests/synth.h %D%/tests/synth.c
%C%_tests_test_analyze_LDADD = coll/libcoll.la

# Not a test: dumps of as many ranks as one wants.
check_PROGRAMS += %D%/tests/make_dumps
%C%_tests_make_dumps_SOURCES = %D%/tests/make_dumps.c %D%/tests/synth.h %D%/tests/synth.c
%C%_tests_make_dumps_LDADD = coll/libcoll.la
