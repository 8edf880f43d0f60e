# Validators of bytes that strangers send: each is a fuzz target (make fuzz, with
# --enable-fuzzing) and, with valid messages changed at random, a test for any compiler.
EXTRA_DIST += %D%/fuzz.h %D%/run %D%/corpus

FUZZERS += %D%/fuzz_boot_wire
%C%_fuzz_boot_wire_SOURCES = %D%/boot_wire.c %D%/engine.c
%C%_fuzz_boot_wire_LDADD = coll/libcoll.la
%C%_fuzz_boot_wire_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_boot_wire
TESTS += %D%/test_boot_wire
%C%_test_boot_wire_SOURCES = %D%/boot_wire.c %D%/random.c
%C%_test_boot_wire_LDADD = coll/libcoll.la

FUZZERS += %D%/fuzz_shm_hello
%C%_fuzz_shm_hello_SOURCES = %D%/shm_hello.c %D%/engine.c
%C%_fuzz_shm_hello_LDADD = prov/libprov.la
%C%_fuzz_shm_hello_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_shm_hello
TESTS += %D%/test_shm_hello
%C%_test_shm_hello_SOURCES = %D%/shm_hello.c %D%/random.c
%C%_test_shm_hello_LDADD = prov/libprov.la

FUZZERS += %D%/fuzz_pkt
%C%_fuzz_pkt_SOURCES = %D%/pkt.c %D%/engine.c
%C%_fuzz_pkt_LDADD = prov/libprov.la
%C%_fuzz_pkt_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_pkt
TESTS += %D%/test_pkt
%C%_test_pkt_SOURCES = %D%/pkt.c %D%/random.c
%C%_test_pkt_LDADD = prov/libprov.la

FUZZERS += %D%/fuzz_ctl
%C%_fuzz_ctl_SOURCES = %D%/ctl.c %D%/engine.c
%C%_fuzz_ctl_LDADD = coll/libcoll.la
%C%_fuzz_ctl_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_ctl
TESTS += %D%/test_ctl
%C%_test_ctl_SOURCES = %D%/ctl.c %D%/random.c
%C%_test_ctl_LDADD = coll/libcoll.la

FUZZERS += %D%/fuzz_ft_wire
%C%_fuzz_ft_wire_SOURCES = %D%/ft_wire.c %D%/engine.c
%C%_fuzz_ft_wire_LDADD = coll/libcoll.la
%C%_fuzz_ft_wire_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_ft_wire
TESTS += %D%/test_ft_wire
%C%_test_ft_wire_SOURCES = %D%/ft_wire.c %D%/random.c
%C%_test_ft_wire_LDADD = coll/libcoll.la

FUZZERS += %D%/fuzz_ft_frame
%C%_fuzz_ft_frame_SOURCES = %D%/ft_frame.c %D%/engine.c
%C%_fuzz_ft_frame_LDADD = coll/libcoll.la
%C%_fuzz_ft_frame_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_ft_frame
TESTS += %D%/test_ft_frame
%C%_test_ft_frame_SOURCES = %D%/ft_frame.c %D%/random.c
%C%_test_ft_frame_LDADD = coll/libcoll.la

FUZZERS += %D%/fuzz_meet_wire
%C%_fuzz_meet_wire_SOURCES = %D%/meet_wire.c %D%/engine.c
%C%_fuzz_meet_wire_LDADD = coll/libcoll.la
%C%_fuzz_meet_wire_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_meet_wire
TESTS += %D%/test_meet_wire
%C%_test_meet_wire_SOURCES = %D%/meet_wire.c %D%/random.c
%C%_test_meet_wire_LDADD = coll/libcoll.la

FUZZERS += %D%/fuzz_keyview
%C%_fuzz_keyview_SOURCES = %D%/keyview.c %D%/engine.c
%C%_fuzz_keyview_LDADD = prov/libprov.la
%C%_fuzz_keyview_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_keyview
TESTS += %D%/test_keyview
%C%_test_keyview_SOURCES = %D%/keyview.c %D%/random.c
%C%_test_keyview_LDADD = prov/libprov.la

FUZZERS += %D%/fuzz_shm_ring
%C%_fuzz_shm_ring_SOURCES = %D%/shm_ring.c %D%/engine.c
%C%_fuzz_shm_ring_LDADD = prov/libprov.la
%C%_fuzz_shm_ring_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_shm_ring
TESTS += %D%/test_shm_ring
%C%_test_shm_ring_SOURCES = %D%/shm_ring.c %D%/random.c
%C%_test_shm_ring_LDADD = prov/libprov.la

FUZZERS += %D%/fuzz_shm_service
%C%_fuzz_shm_service_SOURCES = %D%/shm_service.c %D%/engine.c
%C%_fuzz_shm_service_LDADD = prov/libprov.la
%C%_fuzz_shm_service_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_shm_service
TESTS += %D%/test_shm_service
%C%_test_shm_service_SOURCES = %D%/shm_service.c %D%/random.c
%C%_test_shm_service_LDADD = prov/libprov.la

FUZZERS += %D%/fuzz_dqplb
%C%_fuzz_dqplb_SOURCES = %D%/dqplb.c %D%/engine.c
%C%_fuzz_dqplb_LDADD = prov/libprov.la
%C%_fuzz_dqplb_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_dqplb
TESTS += %D%/test_dqplb
%C%_test_dqplb_SOURCES = %D%/dqplb.c %D%/random.c
%C%_test_dqplb_LDADD = prov/libprov.la

FUZZERS += %D%/fuzz_layers
%C%_fuzz_layers_SOURCES = %D%/layers.c %D%/engine.c
%C%_fuzz_layers_LDADD = topo/libsim.la
%C%_fuzz_layers_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_layers
TESTS += %D%/test_layers
%C%_test_layers_SOURCES = %D%/layers.c %D%/random.c
%C%_test_layers_LDADD = topo/libsim.la

FUZZERS += %D%/fuzz_fabric_map
%C%_fuzz_fabric_map_SOURCES = %D%/fabric_map.c %D%/engine.c
%C%_fuzz_fabric_map_LDADD = topo/libtopo.la
%C%_fuzz_fabric_map_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_fabric_map
TESTS += %D%/test_fabric_map
%C%_test_fabric_map_SOURCES = %D%/fabric_map.c %D%/random.c
%C%_test_fabric_map_LDADD = topo/libtopo.la

FUZZERS += %D%/fuzz_verbs_card
%C%_fuzz_verbs_card_SOURCES = %D%/verbs_card.c %D%/engine.c
%C%_fuzz_verbs_card_LDADD = prov/libprov.la
%C%_fuzz_verbs_card_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_verbs_card
TESTS += %D%/test_verbs_card
%C%_test_verbs_card_SOURCES = %D%/verbs_card.c %D%/random.c
%C%_test_verbs_card_LDADD = prov/libprov.la

FUZZERS += %D%/fuzz_verbs_frame
%C%_fuzz_verbs_frame_SOURCES = %D%/verbs_frame.c %D%/engine.c
%C%_fuzz_verbs_frame_LDADD = prov/libprov.la
%C%_fuzz_verbs_frame_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_verbs_frame
TESTS += %D%/test_verbs_frame
%C%_test_verbs_frame_SOURCES = %D%/verbs_frame.c %D%/random.c
%C%_test_verbs_frame_LDADD = prov/libprov.la

FUZZERS += %D%/fuzz_uet_wire
%C%_fuzz_uet_wire_SOURCES = %D%/uet_wire.c %D%/engine.c
%C%_fuzz_uet_wire_LDADD = prov/libprov.la
%C%_fuzz_uet_wire_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_uet_wire
TESTS += %D%/test_uet_wire
%C%_test_uet_wire_SOURCES = %D%/uet_wire.c %D%/random.c
%C%_test_uet_wire_LDADD = prov/libprov.la

FUZZERS += %D%/fuzz_uet_hello
%C%_fuzz_uet_hello_SOURCES = %D%/uet_hello.c %D%/engine.c
%C%_fuzz_uet_hello_LDADD = prov/libprov.la
%C%_fuzz_uet_hello_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_uet_hello
TESTS += %D%/test_uet_hello
%C%_test_uet_hello_SOURCES = %D%/uet_hello.c %D%/random.c
%C%_test_uet_hello_LDADD = prov/libprov.la

FUZZERS += %D%/fuzz_uet_pds
%C%_fuzz_uet_pds_SOURCES = %D%/uet_pds.c %D%/engine.c
%C%_fuzz_uet_pds_LDADD = prov/libprov.la
%C%_fuzz_uet_pds_LDFLAGS = $(FUZZ_LDFLAGS)
check_PROGRAMS += %D%/test_uet_pds
TESTS += %D%/test_uet_pds
%C%_test_uet_pds_SOURCES = %D%/uet_pds.c %D%/random.c
%C%_test_uet_pds_LDADD = prov/libprov.la
