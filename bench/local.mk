# Benchmarks beside peers: see the README.md. The programs are built with everything else, so
# that they always compile; coll_mpi.c and mpi_pair.c are built by bench/coll and bench/mpi, with an MPI's compiler.
bench_scripts = %D%/instructions %D%/p2p %D%/coll %D%/mpi %D%/moe %D%/startup %D%/ftar %D%/trace %D%/overlap %D%/sim
EXTRA_DIST += $(bench_scripts) %D%/coll_mpi.c %D%/mpi_pair.c %D%/lib/common.sh %D%/lib/spaces.sh %D%/lib/floor.sh %D%/lib/ucx.sh %D%/lib/p2p_uet.sh \
	%D%/lib/p2p.awk %D%/lib/coll.awk %D%/lib/mpi.awk

bench_say = %D%/say.c %D%/say.h
bench_node = %D%/node.c %D%/node.h
bench_pair = %D%/pair.c %D%/pair.h %D%/cpus.c %D%/cpus.h

noinst_PROGRAMS += %D%/inst_fi
%C%_inst_fi_SOURCES = %D%/inst_fi.c $(bench_node) $(bench_say)
%C%_inst_fi_LDADD = $(LIBFABRIC_LIBS)

noinst_PROGRAMS += %D%/linelat
%C%_linelat_SOURCES = %D%/linelat.c $(bench_pair) $(bench_say)

noinst_PROGRAMS += %D%/p2p_fi
%C%_p2p_fi_SOURCES = %D%/p2p_fi.c %D%/p2p.h %D%/p2p_msg.c %D%/p2p_write.c \
	$(bench_node) $(bench_pair) $(bench_say)
%C%_p2p_fi_LDADD = $(LIBFABRIC_LIBS)

# One rank of bench/moe.
noinst_PROGRAMS += %D%/moe_ranks
%C%_moe_ranks_SOURCES = %D%/moe_ranks.c $(bench_say)
%C%_moe_ranks_LDADD = libweft.la -lm

# One rank of bench/startup.
noinst_PROGRAMS += %D%/startup_rank
%C%_startup_rank_SOURCES = %D%/startup_rank.c $(bench_say)
%C%_startup_rank_LDADD = libweft.la

# One rank of bench/ftar.
noinst_PROGRAMS += %D%/ftar_rank
%C%_ftar_rank_SOURCES = %D%/ftar_rank.c $(bench_say)
%C%_ftar_rank_LDADD = libweft.la

# Of prov/dqplb alone, from inside.
noinst_PROGRAMS += %D%/dqplb
%C%_dqplb_SOURCES = %D%/dqplb.c $(bench_say)
%C%_dqplb_LDADD = prov/libprov.la

CLEANFILES += %D%/coll_mpi %D%/mpi_pair

bench_tests = %D%/tests/trace.t %D%/tests/report.t %D%/tests/instructions.t %D%/tests/p2p.t %D%/tests/coll.t \
	%D%/tests/mpi.t %D%/tests/dqplb.t %D%/tests/moe.t \
	%D%/tests/startup.t %D%/tests/ftar.t %D%/tests/overlap.t %D%/tests/sim.t
PLAIN_TESTS += $(bench_tests)
EXTRA_DIST += $(bench_tests)

# Short versions of all. Status 2 is a peer or a tool that is not installed, 3 a machine
# that moved too much: the script has said so, and the next one runs.
bench: all
	@for b in 'instructions --quick' 'p2p --vs shm --quick' 'p2p --vs ucx --quick' \
			'coll --quick' 'mpi --quick' 'moe --quick' 'startup --quick' 'overlap --quick'; do \
		echo "== bench/$$b"; \
		WEFT_TOP_BUILDDIR='$(abs_top_builddir)' '$(abs_top_srcdir)'/bench/$$b; \
		status=$$?; \
		test $$status = 0 || test $$status = 2 || test $$status = 3 || \
			exit $$status; \
	done
	@echo "== bench/dqplb"; %D%/dqplb --ops 10000000

# Nanoseconds for each immediate and each segment; DQPLB_OPS operations for each figure.
DQPLB_OPS = 100000000
bench-dqplb: %D%/dqplb
	%D%/dqplb --ops $(DQPLB_OPS)

.PHONY: bench bench-dqplb
