# Sources of coll/tune (libcoll.la) and the unit tests beside them.
COLL_SOURCES += %D%/tune.h %D%/tune.c %D%/cost.h %D%/cost.c %D%/json_read.h %D%/json_read.c
EXTRA_DIST += %D%/README.md

check_PROGRAMS += %D%/tests/test_tune
TESTS += %D%/tests/test_tune
%C%_tests_test_tune_SOURCES = %D%/tests/test_tune.c
%C%_tests_test_tune_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_cost
TESTS += %D%/tests/test_cost
%C%_tests_test_cost_SOURCES = %D%/tests/test_cost.c
%C%_tests_test_cost_LDADD = coll/libcoll.la
