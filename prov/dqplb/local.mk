# Sources of prov/dqplb (libprov.la) and the unit tests beside them.
PROV_SOURCES += \
	%D%/bits.h \
	%D%/imm.h \
	%D%/msg.c %D%/msg.h \
	%D%/profile.c %D%/profile.h \
	%D%/rails.c %D%/rails.h \
	%D%/rq.h \
	%D%/rx.c %D%/rx.h %D%/rx_int.h %D%/rx_record.c \
	%D%/text.h %D%/rx_text.c %D%/tx_text.c \
	%D%/tx.c %D%/tx.h %D%/tx_int.h %D%/tx_quick.h %D%/tx_ack.c %D%/tx_lane.c %D%/tx_xfer.c

check_PROGRAMS += %D%/tests/test_msg
TESTS += %D%/tests/test_msg
%C%_tests_test_msg_SOURCES = %D%/tests/test_msg.c
%C%_tests_test_msg_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_rx
TESTS += %D%/tests/test_rx
%C%_tests_test_rx_SOURCES = %D%/tests/test_rx.c
%C%_tests_test_rx_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_tx
TESTS += %D%/tests/test_tx
%C%_tests_test_tx_SOURCES = %D%/tests/test_tx.c
%C%_tests_test_tx_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_dqplb
TESTS += %D%/tests/test_dqplb
%C%_tests_test_dqplb_SOURCES = %D%/tests/test_dqplb.c %D%/tests/sim.c %D%/tests/sim.h
%C%_tests_test_dqplb_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_profile
TESTS += %D%/tests/test_profile
%C%_tests_test_profile_SOURCES = %D%/tests/test_profile.c
%C%_tests_test_profile_LDADD = prov/libprov.la

# A model, not Weft's code: sanitizers have nothing to do with it.
PLAIN_TESTS += %D%/tests/failover.t
# Of objects as they are shipped.
PLAIN_TESTS += %D%/tests/pure.t
EXTRA_DIST += %D%/README.md %D%/tests/failover.t %D%/tests/failover.pml %D%/tests/pure.t
