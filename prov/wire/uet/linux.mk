# The Linux side of the uet wire: sockets, and what stands between them and the wire.
PROV_SOURCES += \
	%D%/uet.c %D%/uet.h \
	%D%/uet_crc.c %D%/uet_crc.h \
	%D%/uet_sums.c %D%/uet_sums.h \
	%D%/uet_crypto.c %D%/uet_crypto.h \
	%D%/uet_ep.c %D%/uet_ep.h \
	%D%/uet_hello.c %D%/uet_hello.h \
	%D%/uet_helper.c %D%/uet_helper.h \
	%D%/uet_leave.c %D%/uet_leave.h \
	%D%/uet_lend.c %D%/uet_lend.h \
	%D%/uet_link.c %D%/uet_link.h \
	%D%/uet_rails.c %D%/uet_rails.h \
	%D%/uet_recv.c %D%/uet_recv.h \
	%D%/uet_replay.h \
	%D%/uet_rma.c %D%/uet_rma.h \
	%D%/uet_seal.c %D%/uet_seal.h \
	%D%/uet_secret.c %D%/uet_secret.h \
	%D%/uet_send.c %D%/uet_send.h \
	%D%/uet_shim.c %D%/uet_shim.h \
	%D%/uet_sock.c %D%/uet_sock.h \
	%D%/uet_turn.c %D%/uet_turn.h

check_PROGRAMS += %D%/tests/test_uet_sock
TESTS += %D%/tests/test_uet_sock
%C%_tests_test_uet_sock_SOURCES = %D%/tests/test_uet_sock.c
%C%_tests_test_uet_sock_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_uet_shim
TESTS += %D%/tests/test_uet_shim
%C%_tests_test_uet_shim_SOURCES = %D%/tests/test_uet_shim.c
%C%_tests_test_uet_shim_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_uet_seal
TESTS += %D%/tests/test_uet_seal
%C%_tests_test_uet_seal_SOURCES = %D%/tests/test_uet_seal.c
%C%_tests_test_uet_seal_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_uet_hello
TESTS += %D%/tests/test_uet_hello
%C%_tests_test_uet_hello_SOURCES = %D%/tests/test_uet_hello.c
%C%_tests_test_uet_hello_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_uet
TESTS += %D%/tests/test_uet
%C%_tests_test_uet_SOURCES = \
	%D%/tests/test_uet.c %D%/tests/uet_lent.h %D%/tests/uet_peek.c %D%/tests/uet_peek.h
%C%_tests_test_uet_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_uet_turn
TESTS += %D%/tests/test_uet_turn
THREAD_TESTS += %D%/tests/test_uet_turn %D%/tests/test_uet
%C%_tests_test_uet_turn_SOURCES = %D%/tests/test_uet_turn.c
%C%_tests_test_uet_turn_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_uet_sums
TESTS += %D%/tests/test_uet_sums
%C%_tests_test_uet_sums_SOURCES = \
	%D%/tests/test_uet_sums.c %D%/tests/uet_side.c %D%/tests/uet_side.h
%C%_tests_test_uet_sums_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_uet_duplex
TESTS += %D%/tests/test_uet_duplex
%C%_tests_test_uet_duplex_SOURCES = \
	%D%/tests/test_uet_duplex.c %D%/tests/uet_peek.c %D%/tests/uet_peek.h \
	%D%/tests/uet_side.c %D%/tests/uet_side.h
%C%_tests_test_uet_duplex_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_uet_link
TESTS += %D%/tests/test_uet_link
%C%_tests_test_uet_link_SOURCES = %D%/tests/test_uet_link.c
%C%_tests_test_uet_link_LDADD = prov/libprov.la

TESTS += %D%/tests/own.t
PLAIN_TESTS += %D%/tests/own.t
EXTRA_DIST += %D%/tests/own.t

check_PROGRAMS += %D%/tests/test_uet_secret
TESTS += %D%/tests/test_uet_secret
THREAD_TESTS += %D%/tests/test_uet_secret
%C%_tests_test_uet_secret_SOURCES = \
	%D%/tests/test_uet_secret.c %D%/tests/uet_side.c %D%/tests/uet_side.h
%C%_tests_test_uet_secret_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_uet_rails
TESTS += %D%/tests/test_uet_rails
THREAD_TESTS += %D%/tests/test_uet_rails
%C%_tests_test_uet_rails_SOURCES = \
	%D%/tests/test_uet_rails.c %D%/tests/uet_side.c %D%/tests/uet_side.h
%C%_tests_test_uet_rails_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_uet_bad
TESTS += %D%/tests/test_uet_bad
THREAD_TESTS += %D%/tests/test_uet_bad
%C%_tests_test_uet_bad_SOURCES = \
	%D%/tests/test_uet_bad.c %D%/tests/uet_side.c %D%/tests/uet_side.h
%C%_tests_test_uet_bad_LDADD = prov/libprov.la
