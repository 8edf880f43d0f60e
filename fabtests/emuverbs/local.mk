# An emulated libibverbs for tests. It is chosen by library path (run), so it is built with the
# real one's name, never installed, and only where the real one's header is.
check_PROGRAMS += %D%/tests/test_setup
TESTS += %D%/tests/test_setup
%C%_tests_test_setup_SOURCES = %D%/tests/test_setup.c %D%/setup.c %D%/setup.h

EXTRA_DIST += %D%/README.md %D%/run %D%/suite %D%/failover %D%/absent.ld %D%/libibverbs.map \
	%D%/setups/1x1 %D%/setups/1x16 %D%/setups/2x16-ooo %D%/setups/4-faults \
	%D%/setups/2x4-ipv6

if HAVE_VERBS
check_LTLIBRARIES += %D%/libibverbs.la
# Not where it is installed: a path at all makes it a shared library. It has a thread, so who
# loaded it does not unload it.
%C%_libibverbs_la_LDFLAGS = -rpath /nowhere -version-info 1:0:0 \
	-Wl,--version-script=$(srcdir)/%D%/libibverbs.map -Wl,$(srcdir)/%D%/absent.ld \
	-Wl,-z,nodelete
%C%_libibverbs_la_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
%C%_libibverbs_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
%C%_libibverbs_la_LIBADD = -lpthread
%C%_libibverbs_la_DEPENDENCIES = $(srcdir)/%D%/libibverbs.map $(srcdir)/%D%/absent.ld
%C%_libibverbs_la_SOURCES = %D%/conn.c %D%/conn.h %D%/cq.c %D%/cq.h %D%/dev.c %D%/emu.h \
	%D%/event.c %D%/event.h %D%/fault.c %D%/fault.h %D%/host.c %D%/host.h %D%/late.c %D%/late.h \
	%D%/mr.c %D%/mr.h %D%/names.c %D%/packet.h %D%/post.c %D%/post.h \
	%D%/qp.c %D%/qp.h %D%/req.c %D%/req.h %D%/rsp.c %D%/rsp.h \
	%D%/setup.c %D%/setup.h %D%/srq.c %D%/state.c %D%/state.h \
	%D%/vendor.c

# An empty library of a vendor, which leads to the one above.
check_LTLIBRARIES += %D%/libmlx5.la
%C%_libmlx5_la_LDFLAGS = -rpath /nowhere -version-info 1:0:0
%C%_libmlx5_la_LIBADD = %D%/libibverbs.la
%C%_libmlx5_la_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
%C%_libmlx5_la_SOURCES = %D%/vendor_stub.c

emuverbs_pair = %D%/tests/pair.c %D%/tests/pair.h

check_PROGRAMS += %D%/tests/test_qp
TESTS += %D%/tests/test_qp
%C%_tests_test_qp_SOURCES = %D%/tests/test_qp.c $(emuverbs_pair)
%C%_tests_test_qp_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
%C%_tests_test_qp_LDADD = %D%/libibverbs.la

check_PROGRAMS += %D%/tests/test_mixed
TESTS += %D%/tests/test_mixed
%C%_tests_test_mixed_SOURCES = %D%/tests/test_mixed.c $(emuverbs_pair)
%C%_tests_test_mixed_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
# So that it meets no other.
%C%_tests_test_mixed_LDFLAGS = -Wl,--no-as-needed
%C%_tests_test_mixed_LDADD = %D%/libmlx5.la %D%/libibverbs.la -ldl

check_PROGRAMS += %D%/tests/test_faults
TESTS += %D%/tests/test_faults
%C%_tests_test_faults_SOURCES = %D%/tests/test_faults.c $(emuverbs_pair)
%C%_tests_test_faults_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
%C%_tests_test_faults_LDADD = %D%/libibverbs.la

check_PROGRAMS += %D%/tests/test_hosts
TESTS += %D%/tests/test_hosts
%C%_tests_test_hosts_SOURCES = %D%/tests/test_hosts.c $(emuverbs_pair)
%C%_tests_test_hosts_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
%C%_tests_test_hosts_LDADD = %D%/libibverbs.la

check_PROGRAMS += %D%/tests/test_objects
TESTS += %D%/tests/test_objects
%C%_tests_test_objects_SOURCES = %D%/tests/test_objects.c $(emuverbs_pair)
%C%_tests_test_objects_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
%C%_tests_test_objects_LDADD = %D%/libibverbs.la

check_PROGRAMS += %D%/tests/test_threads
TESTS += %D%/tests/test_threads
%C%_tests_test_threads_SOURCES = %D%/tests/test_threads.c $(emuverbs_pair)
%C%_tests_test_threads_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
%C%_tests_test_threads_LDADD = %D%/libibverbs.la -lpthread

# Not test_hosts: it forks.
THREAD_TESTS += %D%/tests/test_qp %D%/tests/test_mixed %D%/tests/test_faults \
	%D%/tests/test_objects %D%/tests/test_threads

TESTS += %D%/tests/run.t %D%/tests/failover.t %D%/tests/rekey.t %D%/tests/cut.t %D%/tests/counted.t \
	%D%/tests/shown.t %D%/tests/absent.t %D%/tests/atomics.t
EXTRA_DIST += %D%/tests/over.sh %D%/tests/run.t %D%/tests/failover.t %D%/tests/rekey.t %D%/tests/cut.t %D%/tests/counted.t \
	%D%/tests/shown.t %D%/tests/absent.t %D%/tests/atomics.t
endif
