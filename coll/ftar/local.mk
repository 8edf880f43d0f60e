# Sources of coll/ftar (libcoll.la) and the tests beside them.
COLL_SOURCES += %D%/meet.h %D%/meet.c %D%/epoch.h %D%/epoch.c %D%/pipe.h %D%/pipe.c \
	%D%/ftar.c
EXTRA_DIST += %D%/README.md

check_PROGRAMS += %D%/tests/test_ftar
TESTS += %D%/tests/test_ftar
THREAD_TESTS += %D%/tests/test_ftar
%C%_tests_test_ftar_SOURCES = %D%/tests/test_ftar.c %D%/tests/crew.h %D%/tests/crew.c
%C%_tests_test_ftar_LDADD = coll/libcoll.la
