# Sources of coll/boot (libcoll.la) and the unit tests beside them.
COLL_SOURCES += %D%/boot.h %D%/boot.c %D%/boot_wire.h %D%/boot_wire.c \
	%D%/boot_env.h %D%/boot_env.c %D%/boot_io.h %D%/boot_io.c %D%/boot_clock.h \
	%D%/boot_side.h %D%/boot_root.h %D%/boot_root.c %D%/boot_join.c \
	%D%/boot_leaf.c %D%/boot_launch.h %D%/boot_launch.c %D%/boot_pmix.c %D%/ranklist.h %D%/ranklist.c

check_PROGRAMS += %D%/tests/test_boot_unit %D%/tests/test_boot
TESTS += %D%/tests/test_boot_unit %D%/tests/test_boot
%C%_tests_test_boot_unit_SOURCES = %D%/tests/test_boot_unit.c
%C%_tests_test_boot_unit_LDADD = coll/libcoll.la
%C%_tests_test_boot_SOURCES = %D%/tests/test_boot.c
%C%_tests_test_boot_LDADD = coll/libcoll.la
EXTRA_DIST += %D%/README.md %D%/tests/launch.t
TESTS += %D%/tests/launch.t

# Threads: the wire's helper, automatic progress, or two of the test's own.
THREAD_TESTS += %D%/tests/test_boot
