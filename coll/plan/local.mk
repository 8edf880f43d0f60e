# Sources of coll/plan (libcoll.la) and the unit tests beside them.
COLL_SOURCES += %D%/plan.h %D%/plan.c %D%/builder.c %D%/validate.c %D%/print.c \
	%D%/goal.h %D%/goal.c %D%/tables.h %D%/tables.c %D%/nodes.h %D%/nodes.c \
	%D%/checker.h %D%/checker.c %D%/check_job.h %D%/check_job.c \
	%D%/check_conflict.c %D%/check_reach.c %D%/check_run.c %D%/check_proof.c \
	%D%/check_result.c %D%/check_space.h %D%/check_space.c %D%/check_set.h \
	%D%/check_set.c %D%/check_expr.h %D%/check_expr.c %D%/check_mem.h \
	%D%/check_mem.c
EXTRA_DIST += %D%/README.md

check_PROGRAMS += %D%/tests/test_plan %D%/tests/test_checker
TESTS += %D%/tests/test_plan %D%/tests/test_checker
%C%_tests_test_plan_SOURCES = %D%/tests/test_plan.c
%C%_tests_test_plan_LDADD = coll/libcoll.la
%C%_tests_test_checker_SOURCES = %D%/tests/test_checker.c
%C%_tests_test_checker_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_mutants
TESTS += %D%/tests/test_mutants
%C%_tests_test_mutants_SOURCES = %D%/tests/test_mutants.c \
	coll/algo/tests/interp.c coll/algo/tests/interp.h
%C%_tests_test_mutants_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_terms
TESTS += %D%/tests/test_terms
%C%_tests_test_terms_SOURCES = %D%/tests/test_terms.c
%C%_tests_test_terms_LDADD = coll/libcoll.la
