# Sources of the uet wire's protocol (libprov.la) and the unit tests beside them.
PROV_SOURCES += \
	%D%/uet_nscc.c %D%/uet_nscc.h \
	%D%/uet_path.c %D%/uet_path.h \
	%D%/uet_pdc.c %D%/uet_pdc_ack.c %D%/uet_pdc_rx.c %D%/uet_pdc_tx.c \
	%D%/uet_pds.c %D%/uet_pds.h %D%/uet_pds_int.h \
	%D%/uet_wire.c %D%/uet_wire.h %D%/uet_wire_put.c

check_PROGRAMS += \
	%D%/tests/test_uet_back %D%/tests/test_uet_nscc %D%/tests/test_uet_path %D%/tests/test_uet_pds \
	%D%/tests/test_uet_room %D%/tests/test_uet_switch %D%/tests/test_uet_wire
TESTS += \
	%D%/tests/test_uet_back %D%/tests/test_uet_nscc %D%/tests/test_uet_path %D%/tests/test_uet_pds \
	%D%/tests/test_uet_room %D%/tests/test_uet_switch %D%/tests/test_uet_wire
%C%_tests_test_uet_back_SOURCES = %D%/tests/test_uet_back.c
%C%_tests_test_uet_back_LDADD = prov/libprov.la
%C%_tests_test_uet_nscc_SOURCES = %D%/tests/test_uet_nscc.c
%C%_tests_test_uet_nscc_LDADD = prov/libprov.la
%C%_tests_test_uet_path_SOURCES = %D%/tests/test_uet_path.c
%C%_tests_test_uet_path_LDADD = prov/libprov.la
%C%_tests_test_uet_pds_SOURCES = \
	%D%/tests/test_uet_pds.c %D%/tests/uet_sim.c %D%/tests/uet_sim.h \
	%D%/tests/uet_sim_air.c %D%/tests/uet_sim_air.h
%C%_tests_test_uet_pds_LDADD = prov/libprov.la
%C%_tests_test_uet_room_SOURCES = %D%/tests/test_uet_room.c
%C%_tests_test_uet_room_LDADD = prov/libprov.la
%C%_tests_test_uet_switch_SOURCES = \
	%D%/tests/test_uet_switch.c %D%/tests/uet_switch.c %D%/tests/uet_switch.h
%C%_tests_test_uet_switch_LDADD = prov/libprov.la
%C%_tests_test_uet_wire_SOURCES = %D%/tests/test_uet_wire.c
%C%_tests_test_uet_wire_LDADD = prov/libprov.la

# Of objects as they are shipped.
PLAIN_TESTS += %D%/tests/pure.t
EXTRA_DIST += %D%/README.md %D%/tests/pure.t
