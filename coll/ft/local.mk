# Sources of coll/ft (libcoll.la) and the unit tests beside them.
COLL_SOURCES += %D%/places.h %D%/roster.h %D%/roster.c %D%/ft_wire.h %D%/ft_wire.c \
	%D%/member.h %D%/member.c %D%/coord.h %D%/coord_int.h %D%/coord.c %D%/next.c %D%/blame.c %D%/rebuild.c \
	%D%/keep.h %D%/keep.c %D%/frame.h %D%/frame.c %D%/stream.h %D%/stream.c \
	%D%/dial.h %D%/dial.c %D%/link.h %D%/link.c %D%/conns.h %D%/conns.c \
	%D%/server.h %D%/server.c %D%/snapshot.h %D%/snapshot.c %D%/store.h %D%/store.c \
	%D%/tls.h %D%/tls.c %D%/http.h %D%/http.c %D%/etcd.h %D%/etcd.c

check_PROGRAMS += %D%/tests/test_ft_wire
TESTS += %D%/tests/test_ft_wire
%C%_tests_test_ft_wire_SOURCES = %D%/tests/test_ft_wire.c
%C%_tests_test_ft_wire_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_model
TESTS += %D%/tests/test_model
%C%_tests_test_model_SOURCES = %D%/tests/test_model.c %D%/tests/world.c \
	%D%/tests/world.h %D%/tests/world_int.h %D%/tests/network.c %D%/tests/actors.c
%C%_tests_test_model_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_coord %D%/tests/test_rebuild
TESTS += %D%/tests/test_coord %D%/tests/test_rebuild
%C%_tests_test_coord_SOURCES = %D%/tests/test_coord.c %D%/tests/desk.h %D%/tests/desk.c
%C%_tests_test_coord_LDADD = coll/libcoll.la
%C%_tests_test_rebuild_SOURCES = %D%/tests/test_rebuild.c %D%/tests/desk.h %D%/tests/desk.c
%C%_tests_test_rebuild_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_keep
TESTS += %D%/tests/test_keep
%C%_tests_test_keep_SOURCES = %D%/tests/test_keep.c
%C%_tests_test_keep_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_http
TESTS += %D%/tests/test_http
%C%_tests_test_http_SOURCES = %D%/tests/test_http.c
%C%_tests_test_http_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_link %D%/tests/test_server
TESTS += %D%/tests/test_link %D%/tests/test_server
THREAD_TESTS += %D%/tests/test_link %D%/tests/test_server
%C%_tests_test_server_SOURCES = %D%/tests/test_server.c %D%/tests/job.h %D%/tests/job.c
%C%_tests_test_server_LDADD = coll/libcoll.la
%C%_tests_test_link_SOURCES = %D%/tests/test_link.c %D%/tests/job.h %D%/tests/job.c
%C%_tests_test_link_LDADD = coll/libcoll.la

# Whether the model finds what is wrong: it builds changed machines by itself.
EXTRA_DIST += %D%/README.md %D%/tests/mutants.t
TESTS += %D%/tests/mutants.t
PLAIN_TESTS += %D%/tests/mutants.t
