# Topology: libtopo.la, which knows nothing of libfabric and nothing of Weft's other parts.
noinst_LTLIBRARIES += topo/libtopo.la
topo_libtopo_la_SOURCES = \
	%D%/fabric/map.c %D%/fabric/map.h %D%/fabric/map_read.h %D%/fabric/map_tier.c \
	%D%/fabric/place.c %D%/fabric/place.h \
	%D%/draw/plot.h %D%/draw/plot.c
topo_libtopo_la_LIBADD = -lm

check_PROGRAMS += %D%/fabric/tests/test_place
TESTS += %D%/fabric/tests/test_place
%C%_fabric_tests_test_place_SOURCES = %D%/fabric/tests/test_place.c
%C%_fabric_tests_test_place_LDADD = topo/libtopo.la

check_PROGRAMS += %D%/fabric/tests/test_map
TESTS += %D%/fabric/tests/test_map
%C%_fabric_tests_test_map_SOURCES = %D%/fabric/tests/test_map.c
%C%_fabric_tests_test_map_LDADD = topo/libtopo.la

EXTRA_DIST += %D%/README.md %D%/fabric/README.md

check_PROGRAMS += %D%/fabric/tests/test_tier
TESTS += %D%/fabric/tests/test_tier
%C%_fabric_tests_test_tier_SOURCES = %D%/fabric/tests/test_tier.c
%C%_fabric_tests_test_tier_LDADD = topo/libtopo.la

# Plans on a network: needs the plans and algorithms of libcoll.la.
noinst_LTLIBRARIES += topo/libsim.la
topo_libsim_la_SOURCES = \
	%D%/sim/net.h %D%/sim/net_in.h %D%/sim/net.c %D%/sim/net_links.c \
	%D%/sim/net_fault.c %D%/sim/net_torus.c \
	%D%/sim/share.h %D%/sim/share_in.h %D%/sim/share.c %D%/sim/share_fill.c \
	%D%/sim/shape.h %D%/sim/shape.c %D%/sim/engine.h %D%/sim/engine_in.h \
	%D%/sim/engine.c %D%/sim/actor.c %D%/sim/track.c \
	%D%/sim/ring.h %D%/sim/ring.c %D%/sim/model.h %D%/sim/model.c \
	%D%/sim/layers.h %D%/sim/layers.c %D%/sim/step.h %D%/sim/step.c
topo_libsim_la_LIBADD = topo/libtopo.la -lm
EXTRA_DIST += %D%/examples/model.layers %D%/examples/torus.map %D%/examples/published.map %D%/examples/ideal.map

noinst_PROGRAMS += %D%/sim/validate
%C%_sim_validate_SOURCES = %D%/sim/validate.c %D%/sim/validate.h \
	%D%/sim/validate_closed.c %D%/sim/validate_fair.c \
	%D%/sim/validate_real.c %D%/sim/validate_rank.c
%C%_sim_validate_CPPFLAGS = $(AM_CPPFLAGS) \
	-DVALIDATE_REAL='"$(abs_top_srcdir)/%D%/sim/real"' \
	-DVALIDATE_BUILD='"$(abs_top_builddir)"'
%C%_sim_validate_LDADD = topo/libsim.la coll/libcoll.la -lm
EXTRA_DIST += %D%/sim/real
TESTS += %D%/sim/tests/validate.t
EXTRA_DIST += %D%/sim/tests/validate.t

check_PROGRAMS += %D%/sim/tests/test_net %D%/sim/tests/test_engine
TESTS += %D%/sim/tests/test_net %D%/sim/tests/test_engine
%C%_sim_tests_test_net_SOURCES = %D%/sim/tests/test_net.c
%C%_sim_tests_test_net_LDADD = topo/libsim.la coll/libcoll.la
%C%_sim_tests_test_engine_SOURCES = %D%/sim/tests/test_engine.c
%C%_sim_tests_test_engine_LDADD = topo/libsim.la coll/libcoll.la

check_PROGRAMS += %D%/sim/tests/test_model
TESTS += %D%/sim/tests/test_model
%C%_sim_tests_test_model_SOURCES = %D%/sim/tests/test_model.c
%C%_sim_tests_test_model_LDADD = topo/libsim.la coll/libcoll.la -lm

check_PROGRAMS += %D%/sim/tests/test_ring
TESTS += %D%/sim/tests/test_ring
%C%_sim_tests_test_ring_SOURCES = %D%/sim/tests/test_ring.c
%C%_sim_tests_test_ring_LDADD = topo/libsim.la coll/libcoll.la -lm

check_PROGRAMS += %D%/sim/tests/test_layers %D%/sim/tests/test_step
TESTS += %D%/sim/tests/test_layers %D%/sim/tests/test_step
%C%_sim_tests_test_layers_SOURCES = %D%/sim/tests/test_layers.c
%C%_sim_tests_test_layers_LDADD = topo/libsim.la
%C%_sim_tests_test_step_SOURCES = %D%/sim/tests/test_step.c
%C%_sim_tests_test_step_LDADD = topo/libsim.la

# Queues of switches, and the provider's transmit machine.
noinst_PROGRAMS += %D%/sim/incast
%C%_sim_incast_SOURCES = %D%/sim/incast.c %D%/sim/queue.h %D%/sim/queue.c
%C%_sim_incast_LDADD = prov/libprov.la topo/libtopo.la -lm
TESTS += %D%/sim/tests/incast.t
EXTRA_DIST += %D%/sim/tests/incast.t

# Hosts: the one thing that needs hwloc, which the provider must not.
noinst_LTLIBRARIES += topo/libhost.la
topo_libhost_la_SOURCES = \
	%D%/host/host.h %D%/host/host_in.h %D%/host/host.c %D%/host/host_hwloc.c \
	%D%/host/host_sys.c %D%/host/host_links.c %D%/host/sys_file.h %D%/host/sys_file.c \
	%D%/host/near.h %D%/host/near.c %D%/draw/machine.h %D%/draw/machine.c
topo_libhost_la_CFLAGS = $(AM_CFLAGS) $(HWLOC_CFLAGS)
topo_libhost_la_LIBADD = $(HWLOC_LIBS)
EXTRA_DIST += %D%/host/README.md %D%/host/tests/machine

check_PROGRAMS += %D%/host/tests/test_host
TESTS += %D%/host/tests/test_host
%C%_host_tests_test_host_SOURCES = %D%/host/tests/test_host.c
%C%_host_tests_test_host_LDADD = topo/libhost.la
