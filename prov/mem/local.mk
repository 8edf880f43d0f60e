# Sources of prov/mem (libprov.la) and the unit tests beside them.
PROV_SOURCES += %D%/arena.c %D%/arena.h %D%/device.c %D%/device.h %D%/device_copy.c %D%/device_int.h %D%/fork.c %D%/fork.h %D%/keytab.c %D%/keytab.h %D%/keytab_format.h %D%/keytab_own.h \
	%D%/keyview.c %D%/memfd.c %D%/memfd.h %D%/monitor.c %D%/monitor.h %D%/probe.c %D%/probe.h \
	%D%/regcache.c %D%/regcache.h %D%/uffd.c %D%/uffd.h

EXTRA_DIST += %D%/README.md

check_PROGRAMS += %D%/tests/test_keytab
TESTS += %D%/tests/test_keytab
%C%_tests_test_keytab_SOURCES = %D%/tests/test_keytab.c
%C%_tests_test_keytab_LDADD = prov/libprov.la
PROV_SOURCES += %D%/params.c %D%/params.h

check_PROGRAMS += %D%/tests/test_params
TESTS += %D%/tests/test_params
%C%_tests_test_params_SOURCES = %D%/tests/test_params.c
%C%_tests_test_params_LDADD = prov/libprov.la

# Threads: the wire's helper, automatic progress, or two of the test's own.
THREAD_TESTS += %D%/tests/test_keytab

check_PROGRAMS += %D%/tests/test_arena
TESTS += %D%/tests/test_arena
%C%_tests_test_arena_SOURCES = %D%/tests/test_arena.c
%C%_tests_test_arena_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_probe
TESTS += %D%/tests/test_probe
%C%_tests_test_probe_SOURCES = %D%/tests/test_probe.c
%C%_tests_test_probe_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_regcache
TESTS += %D%/tests/test_regcache
THREAD_TESTS += %D%/tests/test_regcache
%C%_tests_test_regcache_SOURCES = %D%/tests/test_regcache.c %D%/tests/reg_mock.h
%C%_tests_test_regcache_LDADD = prov/libprov.la -lpthread

# By hand.
check_PROGRAMS += %D%/tests/bench_regcache
%C%_tests_bench_regcache_SOURCES = %D%/tests/bench_regcache.c %D%/tests/reg_mock.h
%C%_tests_bench_regcache_LDADD = prov/libprov.la
