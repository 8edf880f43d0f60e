# The weft command: one file per subcommand. Links the convenience library,
# because check-plans and perf --stats look inside.
bin_PROGRAMS += weft
weft_SOURCES = %D%/main.c %D%/cmd.h %D%/parse.h %D%/parse.c \
	%D%/run.c %D%/run_job.h %D%/run_job.c %D%/run_child.h %D%/run_child.c \
	%D%/run_out.h %D%/run_out.c %D%/run_bind.h %D%/run_bind.c \
	%D%/run_guard.h %D%/run_guard.c
weft_CFLAGS = $(AM_CFLAGS) $(HWLOC_CFLAGS)
weft_LDADD = coll/libcoll.la $(LIBFABRIC_LIBS) $(HWLOC_LIBS) -lpthread -lm

check_PROGRAMS += %D%/tests/rank_boot
%C%_tests_rank_boot_SOURCES = %D%/tests/rank_boot.c
%C%_tests_rank_boot_LDADD = coll/libcoll.la
TESTS += %D%/tests/run.t
EXTRA_DIST += %D%/tests/run.t %D%/README.md
