# Sources of coll/algo (libcoll.la) and the unit tests beside them.
ALGO_SOURCES = %D%/algo.h %D%/algo.c %D%/build.h %D%/build.c \
	%D%/barrier_dissemination.c %D%/broadcast_binomial.c \
	%D%/allgather_ring.c %D%/allgather_doubling.c \
	%D%/allreduce_ring.c %D%/allreduce_doubling.c \
	%D%/allgather_ffbruck.c %D%/broadcast_chain.c %D%/pair.c %D%/pair.h %D%/reduce_chain.c \
	%D%/allgatherv_ring.c %D%/reducescatter_ring.c %D%/reducescatter_halving.c \
	%D%/alltoall_direct.c %D%/alltoall_bruck.c %D%/reduce_binomial.c \
	%D%/gather_binomial.c %D%/gather_direct.c %D%/scatter_binomial.c \
	%D%/scatter_direct.c %D%/allreduce_halving.c %D%/barrier_flat.c %D%/broadcast_flat.c \
	%D%/tree.h %D%/tree.c %D%/broadcast_tree.c %D%/reduce_tree.c %D%/allreduce_tree.c \
	%D%/allreduce_nodes.c %D%/barrier_tree.c %D%/allgather_streamed.c \
	%D%/allgather_nodes.c %D%/lines.c
COLL_SOURCES += $(ALGO_SOURCES)
EXTRA_DIST += %D%/README.md

check_PROGRAMS += %D%/tests/test_algo
TESTS += %D%/tests/test_algo
%C%_tests_test_algo_SOURCES = %D%/tests/test_algo.c %D%/tests/interp.c \
	%D%/tests/interp.h
%C%_tests_test_algo_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_twin
TESTS += %D%/tests/test_twin
%C%_tests_test_twin_SOURCES = %D%/tests/test_twin.c %D%/tests/interp.c %D%/tests/interp.h
%C%_tests_test_twin_LDADD = coll/libcoll.la

# The same sources again, which count what is run of them.
check_LTLIBRARIES += %D%/tests/libcounted.la
%C%_tests_libcounted_la_SOURCES = coll/plan/plan.c coll/plan/builder.c coll/plan/validate.c \
	coll/plan/nodes.c coll/plan/goal.c $(ALGO_SOURCES)
%C%_tests_libcounted_la_CFLAGS = $(AM_CFLAGS) -fsanitize-coverage=trace-pc
check_PROGRAMS += %D%/tests/test_scale
TESTS += %D%/tests/test_scale
%C%_tests_test_scale_SOURCES = %D%/tests/test_scale.c
%C%_tests_test_scale_LDADD = %D%/tests/libcounted.la
%C%_tests_test_scale_LDFLAGS = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
