# Conformance: upstream's fabtests (fabtests/upstream, run by hand and by quickstart check,
# since it needs the network once) and the provider's own black-box tests.
EXTRA_DIST += %D%/README.md %D%/upstream %D%/soak %D%/exclude/weft %D%/ubertest/weft.test \
	%D%/lib/inside.sh %D%/lib/lists.sh %D%/lib/obtain.sh %D%/lib/pair.sh \
	%D%/lib/child.sh %D%/lib/say.sh %D%/lib/script.sh %D%/lib/table.sh

# Real clients from the distribution's packages (fabtests/clients/run, by hand, and a short
# form by quickstart check); the programs are built by it with an MPI's own compiler.
EXTRA_DIST += %D%/clients/run %D%/clients/lib/host %D%/clients/lib/job.sh %D%/clients/lib/openmpi.sh \
	%D%/clients/lib/packages.sh %D%/clients/lib/result.sh \
	%D%/clients/lib/suite.sh %D%/clients/suite/exclude %D%/clients/mpi/check.c %D%/clients/mpi/check.h \
	%D%/clients/mpi/coll.c %D%/clients/mpi/onesided.c %D%/clients/mpi/p2p.c \
	%D%/clients/mpi/probe.c %D%/clients/mpi/spawn.c %D%/clients/mpi/threads.c \
	%D%/clients/mpi/types.c

# Two network namespaces and a cable.
EXTRA_DIST += %D%/netns/README.md %D%/netns/run %D%/netns/bin/on %D%/netns/lib/inside.sh \
	%D%/netns/lib/pair.sh %D%/netns/tests/netns.t
TESTS += %D%/netns/tests/netns.t
PLAIN_TESTS += %D%/netns/tests/netns.t

# Membership on a virtual clock (by hand; the program is coll/ft/tests/test_model).
EXTRA_DIST += %D%/chaos/README.md %D%/chaos/model %D%/chaos/tests/model.t
TESTS += %D%/chaos/tests/model.t
PLAIN_TESTS += %D%/chaos/tests/model.t

# Ranks that die while they reduce (fabtests/chaos/run, by hand, and a short form here).
check_PROGRAMS += %D%/chaos/chaos
TEST_HELPERS += %D%/chaos/chaos
%C%_chaos_chaos_SOURCES = %D%/chaos/chaos.c %D%/chaos/chaos.h %D%/chaos/rank.c \
	%D%/chaos/space.h %D%/chaos/space.c
%C%_chaos_chaos_LDADD = libweft.la
EXTRA_DIST += %D%/chaos/run %D%/chaos/tests/chaos.t
# Jobs with something wrong, and what the analyzer says.
check_PROGRAMS += %D%/chaos/faulty
TEST_HELPERS += %D%/chaos/faulty
%C%_chaos_faulty_SOURCES = %D%/chaos/faulty.c
%C%_chaos_faulty_LDADD = libweft.la
EXTRA_DIST += %D%/chaos/analyze-seeded %D%/chaos/tests/seeded.t
TESTS += %D%/chaos/tests/seeded.t
PLAIN_TESTS += %D%/chaos/tests/seeded.t
TESTS += %D%/chaos/tests/chaos.t
PLAIN_TESTS += %D%/chaos/tests/chaos.t

# The uet wire on good networks and bad ones (by quickstart check).
EXTRA_DIST += %D%/uet/README.md %D%/uet/congestion %D%/uet/congestion.awk %D%/uet/suite %D%/uet/tests/uet.t
TESTS += %D%/uet/tests/uet.t
PLAIN_TESTS += %D%/uet/tests/uet.t

# Real devices of software in virtual machines (fabtests/softroce/run, by hand, and its
# list ci by quickstart check).
EXTRA_DIST += %D%/softroce/run %D%/softroce/guest/agent %D%/softroce/guest/bin/on \
	%D%/softroce/guest/bin/rail %D%/softroce/guest/bin/softroce_do \
	%D%/softroce/guest/bench %D%/softroce/guest/failover.sh %D%/softroce/guest/init \
	%D%/softroce/guest/lib.sh %D%/softroce/guest/list \
	%D%/softroce/guest/main %D%/softroce/lib/kernel.sh %D%/softroce/lib/lists.sh \
	%D%/softroce/lib/need.sh %D%/softroce/lib/vm.sh %D%/softroce/lists/ci \
	%D%/softroce/lists/full %D%/softroce/tests/boot %D%/softroce/tests/softroce.t
PLAIN_TESTS += %D%/softroce/tests/softroce.t

EXTRA_DIST += %D%/tests/apart.t %D%/tests/clients.t %D%/tests/ended.t %D%/tests/upstream.t
PLAIN_TESTS += %D%/tests/apart.t %D%/tests/clients.t %D%/tests/ended.t %D%/tests/upstream.t

# The provider's own black-box tests: they use public libfabric calls only, and would run
# against any provider (--provider NAME).
fabtests_own = %D%/own/util.c %D%/own/util.h %D%/own/apart.c %D%/own/apart.h %D%/own/node.c

check_PROGRAMS += %D%/own/messages
TESTS += %D%/own/messages
%C%_own_messages_SOURCES = %D%/own/messages.c $(fabtests_own)
%C%_own_messages_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/receives
TESTS += %D%/own/receives
%C%_own_receives_SOURCES = %D%/own/receives.c $(fabtests_own)
%C%_own_receives_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/peer
TESTS += %D%/own/peer
%C%_own_peer_SOURCES = %D%/own/peer.c %D%/own/peer_owner.c %D%/own/peer_owner.h \
	$(fabtests_own)
%C%_own_peer_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/peek
TESTS += %D%/own/peek
%C%_own_peek_SOURCES = %D%/own/peek.c $(fabtests_own)
%C%_own_peek_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/counted
TESTS += %D%/own/counted
%C%_own_counted_SOURCES = %D%/own/counted.c $(fabtests_own)
%C%_own_counted_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/levels
TESTS += %D%/own/levels
%C%_own_levels_SOURCES = %D%/own/levels.c $(fabtests_own)
%C%_own_levels_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/av_shared
TESTS += %D%/own/av_shared
%C%_own_av_shared_SOURCES = %D%/own/av_shared.c $(fabtests_own)
%C%_own_av_shared_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/sep
TESTS += %D%/own/sep
%C%_own_sep_SOURCES = %D%/own/sep.c $(fabtests_own)
%C%_own_sep_LDADD = $(LIBFABRIC_LIBS) -lpthread

check_PROGRAMS += %D%/own/srx
TESTS += %D%/own/srx
%C%_own_srx_SOURCES = %D%/own/srx.c %D%/own/srx_group.c %D%/own/srx_group.h $(fabtests_own)
%C%_own_srx_LDADD = $(LIBFABRIC_LIBS) -lpthread

check_PROGRAMS += %D%/own/trigger
TESTS += %D%/own/trigger
%C%_own_trigger_SOURCES = %D%/own/trigger.c $(fabtests_own)
%C%_own_trigger_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/trigger_atomic
TESTS += %D%/own/trigger_atomic
%C%_own_trigger_atomic_SOURCES = %D%/own/trigger_atomic.c %D%/own/remote.c \
	%D%/own/remote.h $(fabtests_own)
%C%_own_trigger_atomic_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/rma
TESTS += %D%/own/rma
%C%_own_rma_SOURCES = %D%/own/rma.c %D%/own/remote.c %D%/own/remote.h $(fabtests_own)
%C%_own_rma_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/options
TESTS += %D%/own/options
%C%_own_options_SOURCES = %D%/own/options.c $(fabtests_own)
%C%_own_options_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/regions
TESTS += %D%/own/regions
%C%_own_regions_SOURCES = %D%/own/regions.c %D%/own/remote.c %D%/own/remote.h \
	$(fabtests_own)
%C%_own_regions_LDADD = $(LIBFABRIC_LIBS)

fabtests_atomic = %D%/own/atomic_side.c %D%/own/atomic_side.h %D%/own/remote.c \
	%D%/own/remote.h $(fabtests_own)
check_PROGRAMS += %D%/own/atomics
TESTS += %D%/own/atomics
%C%_own_atomics_SOURCES = %D%/own/atomics.c $(fabtests_atomic)
%C%_own_atomics_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/atomic_events
TESTS += %D%/own/atomic_events
%C%_own_atomic_events_SOURCES = %D%/own/atomic_events.c $(fabtests_atomic)
%C%_own_atomic_events_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/contend
TESTS += %D%/own/contend
%C%_own_contend_SOURCES = %D%/own/contend.c $(fabtests_own)
%C%_own_contend_LDADD = $(LIBFABRIC_LIBS) -lpthread

# Run by emuverbs/tests/atomics.t.
check_PROGRAMS += %D%/own/native
TEST_HELPERS += %D%/own/native
%C%_own_native_SOURCES = %D%/own/native.c $(fabtests_own)
%C%_own_native_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/shared
TESTS += %D%/own/shared
%C%_own_shared_SOURCES = %D%/own/shared.c %D%/own/remote.c %D%/own/remote.h \
	$(fabtests_own)
%C%_own_shared_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/large
TESTS += %D%/own/large
%C%_own_large_SOURCES = %D%/own/large.c $(fabtests_own)
%C%_own_large_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/stopped
TESTS += %D%/own/stopped
%C%_own_stopped_SOURCES = %D%/own/stopped.c $(fabtests_own)
%C%_own_stopped_LDADD = $(LIBFABRIC_LIBS)

# Run by prov/wire/uet/tests/own.t.
check_PROGRAMS += %D%/own/silent
%C%_own_silent_SOURCES = %D%/own/silent.c $(fabtests_own)
%C%_own_silent_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/death
TESTS += %D%/own/death
%C%_own_death_SOURCES = %D%/own/death.c $(fabtests_own)
%C%_own_death_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/stranger
TESTS += %D%/own/stranger
%C%_own_stranger_SOURCES = %D%/own/stranger.c $(fabtests_own)
%C%_own_stranger_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/waits
TESTS += %D%/own/waits
%C%_own_waits_SOURCES = %D%/own/waits.c $(fabtests_own)
%C%_own_waits_LDADD = $(LIBFABRIC_LIBS) -lpthread

check_PROGRAMS += %D%/own/getinfo
TESTS += %D%/own/getinfo
%C%_own_getinfo_SOURCES = %D%/own/getinfo.c $(fabtests_own)
%C%_own_getinfo_LDADD = $(LIBFABRIC_LIBS)

# Its own symbols stand in front of the C library's.
check_PROGRAMS += %D%/own/faults
TESTS += %D%/own/faults
%C%_own_faults_SOURCES = %D%/own/faults.c %D%/own/fault.c %D%/own/fault.h $(fabtests_own)
%C%_own_faults_LDFLAGS = -Wl,--export-dynamic
%C%_own_faults_LDADD = $(LIBFABRIC_LIBS) -ldl -lpthread

# Long by name: --size 1G.
check_PROGRAMS += %D%/own/stream
TESTS += %D%/own/stream
%C%_own_stream_SOURCES = %D%/own/stream.c %D%/own/stream_plan.c %D%/own/stream_plan.h \
	%D%/own/remote.c %D%/own/remote.h $(fabtests_own)
%C%_own_stream_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/rekey
TESTS += %D%/own/rekey
%C%_own_rekey_SOURCES = %D%/own/rekey.c %D%/own/remote.c %D%/own/remote.h $(fabtests_own)
%C%_own_rekey_LDADD = $(LIBFABRIC_LIBS)

# Run by emuverbs/tests/cut.t: somebody has to cut the ways.
check_PROGRAMS += %D%/own/cut
TEST_HELPERS += %D%/own/cut
%C%_own_cut_SOURCES = %D%/own/cut.c %D%/own/remote.c %D%/own/remote.h $(fabtests_own)
%C%_own_cut_LDADD = $(LIBFABRIC_LIBS)

# Long by name: see soak.
fabtests_soak = $(fabtests_own) %D%/own/soak.c %D%/own/soak.h

check_PROGRAMS += %D%/own/early
TESTS += %D%/own/early
%C%_own_early_SOURCES = %D%/own/early.c $(fabtests_soak)
%C%_own_early_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/depth
TESTS += %D%/own/depth
%C%_own_depth_SOURCES = %D%/own/depth.c $(fabtests_soak)
%C%_own_depth_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/churn
TESTS += %D%/own/churn
%C%_own_churn_SOURCES = %D%/own/churn.c %D%/own/churn_client.c \
	%D%/own/churn_server.c %D%/own/churn.h \
	%D%/own/remote.c %D%/own/remote.h $(fabtests_soak)
%C%_own_churn_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/forks
TESTS += %D%/own/forks
%C%_own_forks_SOURCES = %D%/own/forks.c %D%/own/remote.c %D%/own/remote.h \
	$(fabtests_soak)
%C%_own_forks_LDADD = $(LIBFABRIC_LIBS)

check_PROGRAMS += %D%/own/chaos
TESTS += %D%/own/chaos
%C%_own_chaos_SOURCES = %D%/own/chaos.c %D%/own/remote.c %D%/own/remote.h \
	$(fabtests_soak)
%C%_own_chaos_LDADD = $(LIBFABRIC_LIBS)

TESTS += %D%/own/pingpong.t
EXTRA_DIST += %D%/own/pingpong.t

# Not rma: its target hears by other means than the provider what the wire's helper thread
# did for the initiator, and no sanitizer sees an order that another process makes.
THREAD_TESTS += %D%/own/waits %D%/own/messages %D%/own/srx

include %D%/emuverbs/local.mk
