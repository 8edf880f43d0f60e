# Sources of coll/exec (libcoll.la) and the unit tests beside them.
COLL_SOURCES += %D%/reduce.h %D%/reduce.c %D%/reduce_kernel.h \
	%D%/reduce_template.h %D%/reduce_isa.h %D%/reduce_half.h %D%/reduce_bits.h \
	%D%/reduce_base.c %D%/reduce_avx2.c %D%/reduce_avx512.c

check_PROGRAMS += %D%/tests/test_reduce
TESTS += %D%/tests/test_reduce
%C%_tests_test_reduce_SOURCES = %D%/tests/test_reduce.c
%C%_tests_test_reduce_LDADD = coll/libcoll.la -lm

# Not a test: prints GB/s per type, operation and instruction set.
check_PROGRAMS += %D%/tests/bench_reduce
%C%_tests_bench_reduce_SOURCES = %D%/tests/bench_reduce.c
%C%_tests_bench_reduce_LDADD = coll/libcoll.la

COLL_SOURCES += %D%/ctl.c %D%/ctl.h %D%/ctl_io.c %D%/engine.c %D%/engine.h \
	%D%/block.c %D%/block.h %D%/crowd.c %D%/crowd.h %D%/nodes.c %D%/nodes.h %D%/events.c %D%/exec.h %D%/fail.c %D%/lines.h %D%/lines.c %D%/lines_mem.h %D%/lines_mem.c \
	%D%/lines_far.h %D%/lines_far.c %D%/lines_near.h %D%/lines_near.c %D%/lines_quick.c \
	%D%/lines_req.h %D%/lines_req.c %D%/local.c %D%/mem.c %D%/mem.h \
	%D%/gpus.h %D%/gpus.c %D%/pinned.h %D%/pinned.c %D%/mirror.h %D%/mirror.c %D%/tables.h %D%/tables.c %D%/need.c %D%/passage.h %D%/passage.c \
	%D%/name.h %D%/net.c %D%/net.h %D%/net_list.c %D%/net_pick.c %D%/net_pick.h %D%/pair.c %D%/pair.h %D%/pool.c \
	%D%/pool.h %D%/req.c %D%/revoke.c %D%/agree.h %D%/agree.c %D%/shrink.c %D%/rx.c \
	%D%/counts.c %D%/counts.h %D%/seen.c %D%/seen.h %D%/sig.c %D%/sig.h %D%/accord.c %D%/order.c %D%/sink.c %D%/tx.c \
	%D%/twin.c %D%/twin.h %D%/win.c %D%/win.h

check_PROGRAMS += %D%/tests/test_formats
TESTS += %D%/tests/test_formats
%C%_tests_test_formats_SOURCES = %D%/tests/test_formats.c
%C%_tests_test_formats_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_crowd
TESTS += %D%/tests/test_crowd
%C%_tests_test_crowd_SOURCES = %D%/tests/test_crowd.c
%C%_tests_test_crowd_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_lines
TESTS += %D%/tests/test_lines
THREAD_TESTS += %D%/tests/test_lines
%C%_tests_test_lines_SOURCES = %D%/tests/test_lines.c
%C%_tests_test_lines_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_agree
TESTS += %D%/tests/test_agree
%C%_tests_test_agree_SOURCES = %D%/tests/test_agree.c
%C%_tests_test_agree_LDADD = coll/libcoll.la

TESTS += %D%/tests/mutants.t
PLAIN_TESTS += %D%/tests/mutants.t
EXTRA_DIST += %D%/tests/mutants.t
