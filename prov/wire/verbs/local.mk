# Sources of the verbs wire and the unit tests beside them. Cards and doors need no header
# of libibverbs and are built everywhere.
PROV_SOURCES += \
	%D%/verbs_auth.c %D%/verbs_auth.h \
	%D%/verbs_call.c %D%/verbs_call.h \
	%D%/verbs_card.c %D%/verbs_card.h \
	%D%/verbs_ctl.c %D%/verbs_ctl.h \
	%D%/verbs_door.c %D%/verbs_door.h \
	%D%/verbs_exchange.c \
	%D%/verbs_frame.c %D%/verbs_frame.h \
	%D%/verbs_helper.c %D%/verbs_helper.h \
	%D%/verbs_keys.c %D%/verbs_keys.h \
	%D%/verbs_listen.c %D%/verbs_listen.h \
	%D%/verbs_msg.c %D%/verbs_msg.h \
	%D%/verbs_near.c %D%/verbs_near.h
if HAVE_VERBS
PROV_SOURCES += \
	%D%/verbs.c %D%/verbs.h \
	%D%/verbs_atomic.c %D%/verbs_atomic.h \
	%D%/verbs_bufs.c %D%/verbs_bufs.h \
	%D%/verbs_chan.c %D%/verbs_chan.h \
	%D%/verbs_connect.c %D%/verbs_connect.h \
	%D%/verbs_dev.c %D%/verbs_dev.h \
	%D%/verbs_ep.c %D%/verbs_ep.h \
	%D%/verbs_flush.c %D%/verbs_flush.h \
	%D%/verbs_fork.c %D%/verbs_fork.h \
	%D%/verbs_gid.c %D%/verbs_gid.h \
	%D%/verbs_lane.c %D%/verbs_lane.h \
	%D%/verbs_lib.c %D%/verbs_lib.h \
	%D%/verbs_link.c %D%/verbs_link.h \
	%D%/verbs_look.c \
	%D%/verbs_mem.c %D%/verbs_mem.h \
	%D%/verbs_quick.c %D%/verbs_quick.h \
	%D%/verbs_ooo.c %D%/verbs_ooo.h \
	%D%/verbs_poll.c %D%/verbs_poll.h \
	%D%/verbs_port.c %D%/verbs_port.h \
	%D%/verbs_post.c \
	%D%/verbs_qp.c %D%/verbs_qp.h \
	%D%/verbs_rail.c %D%/verbs_rail.h \
	%D%/verbs_reaper.c %D%/verbs_reaper.h \
	%D%/verbs_resume.c %D%/verbs_resume.h \
	%D%/verbs_rkey.c %D%/verbs_rkey.h \
	%D%/verbs_rma.c %D%/verbs_rma.h \
	%D%/verbs_spare.c %D%/verbs_spare.h \
	%D%/verbs_srq.c %D%/verbs_srq.h \
	%D%/verbs_state.c %D%/verbs_state.h \
	%D%/verbs_stop.c %D%/verbs_stop.h \
	%D%/verbs_count.c %D%/verbs_count.h %D%/verbs_watch.c %D%/verbs_watch.h
endif

check_PROGRAMS += %D%/tests/test_card
TESTS += %D%/tests/test_card
%C%_tests_test_card_SOURCES = %D%/tests/test_card.c %D%/tests/card_make.h
%C%_tests_test_card_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_verbs_door
TESTS += %D%/tests/test_verbs_door
%C%_tests_test_verbs_door_SOURCES = \
	%D%/tests/test_verbs_door.c %D%/tests/door_rig.h %D%/tests/card_make.h
%C%_tests_test_verbs_door_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_verbs_keys
TESTS += %D%/tests/test_verbs_keys
%C%_tests_test_verbs_keys_SOURCES = \
	%D%/tests/test_verbs_keys.c %D%/tests/door_rig.h %D%/tests/card_make.h
%C%_tests_test_verbs_keys_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_verbs_helper
TESTS += %D%/tests/test_verbs_helper
THREAD_TESTS += %D%/tests/test_verbs_helper
%C%_tests_test_verbs_helper_SOURCES = \
	%D%/tests/test_verbs_helper.c %D%/tests/door_rig.h %D%/tests/card_make.h
%C%_tests_test_verbs_helper_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_ctl
TESTS += %D%/tests/test_ctl
%C%_tests_test_ctl_SOURCES = %D%/tests/test_ctl.c
%C%_tests_test_ctl_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_keytable
TESTS += %D%/tests/test_keytable
%C%_tests_test_keytable_SOURCES = %D%/tests/test_keytable.c
%C%_tests_test_keytable_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_near
TEST_HELPERS += %D%/tests/test_near
%C%_tests_test_near_SOURCES = %D%/tests/test_near.c
%C%_tests_test_near_LDADD = prov/libprov.la

EXTRA_DIST += %D%/README.md

if HAVE_VERBS
check_PROGRAMS += %D%/tests/test_memlock
TESTS += %D%/tests/test_memlock
%C%_tests_test_memlock_SOURCES = %D%/tests/test_memlock.c
%C%_tests_test_memlock_LDADD = prov/libprov.la
check_PROGRAMS += %D%/tests/test_rail
TESTS += %D%/tests/test_rail
THREAD_TESTS += %D%/tests/test_rail
%C%_tests_test_rail_SOURCES = %D%/tests/test_rail.c
%C%_tests_test_rail_LDADD = prov/libprov.la
check_PROGRAMS += %D%/tests/test_fork
TESTS += %D%/tests/test_fork
%C%_tests_test_fork_SOURCES = %D%/tests/test_fork.c
%C%_tests_test_fork_LDADD = prov/libprov.la
check_PROGRAMS += %D%/tests/rails_show
TEST_HELPERS += %D%/tests/rails_show
%C%_tests_rails_show_SOURCES = %D%/tests/rails_show.c %D%/tests/card_make.h
%C%_tests_rails_show_LDADD = prov/libprov.la
check_PROGRAMS += %D%/tests/test_verbs %D%/tests/test_failover %D%/tests/test_many
TEST_HELPERS += %D%/tests/test_verbs %D%/tests/test_failover %D%/tests/test_many
check_PROGRAMS += %D%/tests/test_demand
TEST_HELPERS += %D%/tests/test_demand
%C%_tests_test_demand_SOURCES = %D%/tests/test_demand.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_demand_LDADD = prov/libprov.la
%C%_tests_test_many_SOURCES = %D%/tests/test_many.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_many_LDADD = prov/libprov.la
%C%_tests_test_verbs_SOURCES = %D%/tests/test_verbs.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_verbs_LDADD = prov/libprov.la
%C%_tests_test_failover_SOURCES = \
	%D%/tests/test_failover.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_failover_LDADD = prov/libprov.la
check_PROGRAMS += %D%/tests/test_relaxed
TEST_HELPERS += %D%/tests/test_relaxed
%C%_tests_test_relaxed_SOURCES = %D%/tests/test_relaxed.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_relaxed_LDADD = prov/libprov.la
check_PROGRAMS += %D%/tests/test_placed
TEST_HELPERS += %D%/tests/test_placed
%C%_tests_test_placed_SOURCES = %D%/tests/test_placed.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_placed_LDADD = prov/libprov.la
%C%_tests_test_near_SOURCES += %D%/tests/rig.c %D%/tests/rig.h
check_PROGRAMS += %D%/tests/test_dmabuf
TEST_HELPERS += %D%/tests/test_dmabuf
%C%_tests_test_dmabuf_SOURCES = %D%/tests/test_dmabuf.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_dmabuf_LDADD = prov/libprov.la
check_PROGRAMS += %D%/tests/test_asleep
TEST_HELPERS += %D%/tests/test_asleep
%C%_tests_test_asleep_SOURCES = %D%/tests/test_asleep.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_asleep_LDADD = prov/libprov.la
check_PROGRAMS += %D%/tests/test_reach
TEST_HELPERS += %D%/tests/test_reach
%C%_tests_test_reach_SOURCES = %D%/tests/test_reach.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_reach_LDADD = prov/libprov.la
check_PROGRAMS += %D%/tests/test_native
TEST_HELPERS += %D%/tests/test_native
%C%_tests_test_native_SOURCES = %D%/tests/test_native.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_native_LDADD = prov/libprov.la
check_PROGRAMS += %D%/tests/test_left
TEST_HELPERS += %D%/tests/test_left
%C%_tests_test_left_SOURCES = %D%/tests/test_left.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_left_LDADD = prov/libprov.la
endif

TESTS += %D%/tests/dev.t %D%/tests/keys.t %D%/tests/verbs.t %D%/tests/failover.t \
	%D%/tests/many.t %D%/tests/demand.t %D%/tests/placed.t %D%/tests/relaxed.t %D%/tests/left.t \
	%D%/tests/near.t %D%/tests/reach.t %D%/tests/asleep.t \
	%D%/tests/dmabuf.t %D%/tests/hmem.t %D%/tests/native.t
GPU_TESTS += %D%/tests/hmem.t
EXTRA_DIST += %D%/tests/native.t %D%/tests/dmabuf.t %D%/tests/hmem.t %D%/tests/asleep.t %D%/tests/reach.t %D%/tests/near.t %D%/tests/left.t %D%/tests/placed.t \
	%D%/tests/dev.t %D%/tests/keys.t %D%/tests/verbs.t %D%/tests/failover.t \
	%D%/tests/many.t %D%/tests/demand.t %D%/tests/emulated.sh
