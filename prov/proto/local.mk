# Sources of prov/proto (libprov.la) and the unit tests beside them.
PROV_SOURCES += \
	%D%/ack.c \
	%D%/atomic.c %D%/atomic_target.c \
	%D%/atomic_op.c %D%/atomic_op.h %D%/atomic_type.h \
	%D%/arrival.c %D%/arrival.h \
	%D%/bulk.c \
	%D%/bulk_copy.c %D%/bulk_copy.h \
	%D%/stage.c %D%/stage.h \
	%D%/count.c \
	%D%/credit.c \
	%D%/eager.c \
	%D%/engine.c %D%/engine.h \
	%D%/ep.h \
	%D%/joint.c \
	%D%/link.c \
	%D%/match.c %D%/match.h %D%/match_index.c %D%/match_index.h \
	%D%/matcher.c \
	%D%/peek.c \
	%D%/pool.c %D%/pool.h \
	%D%/receiver.c %D%/receiver.h \
	%D%/rma.c \
	%D%/rndv.c \
	%D%/small.h \
	%D%/rx_index.c %D%/rx_index.h \
	%D%/rx_op.c %D%/rx_op.h \
	%D%/sender.c %D%/sender.h \
	%D%/tx_op.c %D%/tx_op.h \
	%D%/wire_atomic.c %D%/wire_atomic.h \
	%D%/wire_pkt.c %D%/wire_pkt.h \
	%D%/xfer.c %D%/xfer.h

check_PROGRAMS += %D%/tests/test_engine
TESTS += %D%/tests/test_engine
%C%_tests_test_engine_SOURCES = %D%/tests/test_engine.c \
	%D%/tests/sim.c %D%/tests/sim.h %D%/tests/mock_wire.c %D%/tests/mock_wire.h \
	%D%/tests/mock_joint.c %D%/tests/mock_notice.c %D%/tests/mock_link.h
%C%_tests_test_engine_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_bulk
TESTS += %D%/tests/test_bulk
%C%_tests_test_bulk_SOURCES = %D%/tests/test_bulk.c \
	%D%/tests/sim.c %D%/tests/sim.h %D%/tests/mock_wire.c %D%/tests/mock_wire.h \
	%D%/tests/mock_joint.c %D%/tests/mock_notice.c %D%/tests/mock_link.h
%C%_tests_test_bulk_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_joint
TESTS += %D%/tests/test_joint
%C%_tests_test_joint_SOURCES = %D%/tests/test_joint.c \
	%D%/tests/sim.c %D%/tests/sim.h %D%/tests/mock_wire.c %D%/tests/mock_wire.h \
	%D%/tests/mock_joint.c %D%/tests/mock_notice.c %D%/tests/mock_link.h
%C%_tests_test_joint_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_order
TESTS += %D%/tests/test_order
%C%_tests_test_order_SOURCES = %D%/tests/test_order.c \
	%D%/tests/sim.c %D%/tests/sim.h %D%/tests/mock_wire.c %D%/tests/mock_wire.h \
	%D%/tests/mock_joint.c %D%/tests/mock_notice.c %D%/tests/mock_link.h
%C%_tests_test_order_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_match
TESTS += %D%/tests/test_match
%C%_tests_test_match_SOURCES = %D%/tests/test_match.c
%C%_tests_test_match_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_wire_pkt
TESTS += %D%/tests/test_wire_pkt
%C%_tests_test_wire_pkt_SOURCES = %D%/tests/test_wire_pkt.c
%C%_tests_test_wire_pkt_LDADD = prov/libprov.la

EXTRA_DIST += %D%/README.md

check_PROGRAMS += %D%/tests/test_atomic_op
TESTS += %D%/tests/test_atomic_op
%C%_tests_test_atomic_op_SOURCES = %D%/tests/test_atomic_op.c
%C%_tests_test_atomic_op_LDADD = prov/libprov.la -lpthread

check_PROGRAMS += %D%/tests/test_atomic
TESTS += %D%/tests/test_atomic
%C%_tests_test_atomic_SOURCES = %D%/tests/test_atomic.c \
	%D%/tests/sim.c %D%/tests/sim.h %D%/tests/mock_wire.c %D%/tests/mock_wire.h \
	%D%/tests/mock_joint.c %D%/tests/mock_notice.c %D%/tests/mock_link.h
%C%_tests_test_atomic_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_sender
TESTS += %D%/tests/test_sender
%C%_tests_test_sender_SOURCES = %D%/tests/test_sender.c
%C%_tests_test_sender_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_local
TESTS += %D%/tests/test_local
%C%_tests_test_local_SOURCES = %D%/tests/test_local.c \
	%D%/tests/sim.c %D%/tests/sim.h %D%/tests/mock_wire.c %D%/tests/mock_wire.h \
	%D%/tests/mock_joint.c %D%/tests/mock_notice.c %D%/tests/mock_link.h %D%/tests/mock_lend.c
%C%_tests_test_local_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_soon
TESTS += %D%/tests/test_soon
%C%_tests_test_soon_SOURCES = %D%/tests/test_soon.c \
	%D%/tests/sim.c %D%/tests/sim.h %D%/tests/mock_wire.c %D%/tests/mock_wire.h \
	%D%/tests/mock_joint.c %D%/tests/mock_notice.c %D%/tests/mock_link.h %D%/tests/mock_lend.c
%C%_tests_test_soon_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_cancel
TESTS += %D%/tests/test_cancel
%C%_tests_test_cancel_SOURCES = %D%/tests/test_cancel.c
%C%_tests_test_cancel_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_two_wires
TESTS += %D%/tests/test_two_wires
%C%_tests_test_two_wires_SOURCES = %D%/tests/test_two_wires.c \
	%D%/tests/sim.c %D%/tests/sim.h %D%/tests/mock_wire.c %D%/tests/mock_wire.h \
	%D%/tests/mock_joint.c %D%/tests/mock_notice.c %D%/tests/mock_link.h
%C%_tests_test_two_wires_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_notice
TESTS += %D%/tests/test_notice
%C%_tests_test_notice_SOURCES = %D%/tests/test_notice.c \
	%D%/tests/sim.c %D%/tests/sim.h %D%/tests/mock_wire.c %D%/tests/mock_wire.h \
	%D%/tests/mock_joint.c %D%/tests/mock_notice.c %D%/tests/mock_link.h
%C%_tests_test_notice_LDADD = prov/libprov.la
