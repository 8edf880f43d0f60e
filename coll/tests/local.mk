# Tests of the collectives over real providers, several processes each.
EXTRA_DIST += %D%/ranks.h %D%/reference.h %D%/run_case.h

check_PROGRAMS += %D%/test_collectives
TESTS += %D%/test_collectives
%C%_test_collectives_SOURCES = %D%/test_collectives.c %D%/ranks.c %D%/reference.c \
	%D%/run_case.c
%C%_test_collectives_LDADD = coll/libcoll.la -lm
