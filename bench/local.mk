# Benchmarks beside peers: see the README.md. The programs are built with everything else, so
# that they always compile; make bench runs short versions.
EXTRA_DIST += %D%/README.md %D%/instructions %D%/lib/common.sh

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
