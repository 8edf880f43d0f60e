# Sources of coll/boot (libcoll.la) and the unit tests beside them.
COLL_SOURCES += %D%/boot.h %D%/boot.c %D%/boot_wire.h %D%/boot_wire.c \
	%D%/boot_env.h %D%/boot_env.c %D%/boot_io.h %D%/boot_io.c %D%/boot_clock.h \
	%D%/boot_side.h %D%/boot_root.h %D%/boot_root.c %D%/boot_join.c \
	%D%/boot_spread.c %D%/boot_table.h %D%/boot_table.c \
	%D%/boot_leaf.c %D%/boot_launch.h %D%/boot_launch.c %D%/boot_pmix.c %D%/ranklist.h %D%/ranklist.c

check_PROGRAMS += %D%/tests/test_boot_unit %D%/tests/test_boot
TESTS += %D%/tests/test_boot_unit %D%/tests/test_boot
%C%_tests_test_boot_unit_SOURCES = %D%/tests/test_boot_unit.c
%C%_tests_test_boot_unit_LDADD = coll/libcoll.la
%C%_tests_test_boot_SOURCES = %D%/tests/test_boot.c
%C%_tests_test_boot_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_boot_table
TESTS += %D%/tests/test_boot_table
%C%_tests_test_boot_table_SOURCES = %D%/tests/test_boot_table.c
%C%_tests_test_boot_table_LDADD = coll/libcoll.la

# What it costs a rank among thousands; its short form is tests/scale.t.
check_PROGRAMS += %D%/tests/scale
%C%_tests_scale_SOURCES = %D%/tests/scale.c
%C%_tests_scale_LDADD = coll/libcoll.la -lm

EXTRA_DIST += %D%/README.md %D%/tests/launch.t %D%/tests/scale.t %D%/tests/slurm.t
TESTS += %D%/tests/launch.t
# A Slurm of its own, of which a sanitizer has nothing to say.
PLAIN_TESTS += %D%/tests/slurm.t
# It counts what is allocated, which sanitizers do in their own way.
PLAIN_TESTS += %D%/tests/scale.t

# Threads: the wire's helper, automatic progress, or two of the test's own.
THREAD_TESTS += %D%/tests/test_boot
