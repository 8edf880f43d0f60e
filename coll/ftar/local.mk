# Sources of coll/ftar (libcoll.la) and the tests beside them.
COLL_SOURCES += %D%/meet_wire.h %D%/meet_wire.c %D%/meet.h %D%/meet.c \
	%D%/epoch.h %D%/epoch.c %D%/pipe.h %D%/pipe.c \
	%D%/ftar.c %D%/serve.c
EXTRA_DIST += %D%/README.md

check_PROGRAMS += %D%/tests/test_ftar
TESTS += %D%/tests/test_ftar
THREAD_TESTS += %D%/tests/test_ftar
%C%_tests_test_ftar_SOURCES = %D%/tests/test_ftar.c %D%/tests/crew.h %D%/tests/crew.c
%C%_tests_test_ftar_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_meet_wire
TESTS += %D%/tests/test_meet_wire
%C%_tests_test_meet_wire_SOURCES = %D%/tests/test_meet_wire.c
%C%_tests_test_meet_wire_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_meet
TESTS += %D%/tests/test_meet
THREAD_TESTS += %D%/tests/test_meet
%C%_tests_test_meet_SOURCES = %D%/tests/test_meet.c
%C%_tests_test_meet_LDADD = coll/libcoll.la -lpthread

check_PROGRAMS += %D%/tests/test_epoch
TESTS += %D%/tests/test_epoch
%C%_tests_test_epoch_SOURCES = %D%/tests/test_epoch.c
%C%_tests_test_epoch_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_serve
TESTS += %D%/tests/test_serve
THREAD_TESTS += %D%/tests/test_serve
%C%_tests_test_serve_SOURCES = %D%/tests/test_serve.c
%C%_tests_test_serve_LDADD = coll/libcoll.la -lpthread
