# Sources of the shared-memory wire and the unit tests beside them.
PROV_SOURCES += \
	%D%/shm.c %D%/shm.h \
	%D%/shm_bulk.c %D%/shm_bulk.h \
	%D%/shm_cma.c %D%/shm_cma.h \
	%D%/shm_connect.c %D%/shm_connect.h \
	%D%/shm_device.c %D%/shm_device.h \
	%D%/shm_door.c %D%/shm_door.h \
	%D%/shm_ep.c %D%/shm_ep.h \
	%D%/shm_fork.c %D%/shm_fork.h \
	%D%/shm_format.c %D%/shm_format.h \
	%D%/shm_handshake.c %D%/shm_handshake.h \
	%D%/shm_helper.c %D%/shm_helper.h \
	%D%/shm_hub.c %D%/shm_hub.h \
	%D%/shm_joint.c %D%/shm_joint.h \
	%D%/shm_link.c %D%/shm_link.h \
	%D%/shm_ring.c %D%/shm_ring.h \
	%D%/shm_rma.c %D%/shm_rma.h %D%/shm_hazard.h \
	%D%/shm_route.c %D%/shm_route.h \
	%D%/shm_service.c %D%/shm_service.h \
	%D%/shm_share.c %D%/shm_share.h

EXTRA_DIST += %D%/README.md

check_PROGRAMS += \
	%D%/tests/test_format %D%/tests/test_ring %D%/tests/test_shm \
	%D%/tests/test_life %D%/tests/test_door %D%/tests/test_sleep \
	%D%/tests/test_many %D%/tests/test_service
TESTS += \
	%D%/tests/test_format %D%/tests/test_ring %D%/tests/test_shm \
	%D%/tests/test_life %D%/tests/test_door %D%/tests/test_sleep \
	%D%/tests/test_many %D%/tests/test_service
%C%_tests_test_format_SOURCES = %D%/tests/test_format.c
%C%_tests_test_format_LDADD = prov/libprov.la
%C%_tests_test_ring_SOURCES = %D%/tests/test_ring.c
%C%_tests_test_ring_LDADD = prov/libprov.la
%C%_tests_test_shm_SOURCES = %D%/tests/test_shm.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_shm_LDADD = prov/libprov.la
%C%_tests_test_life_SOURCES = %D%/tests/test_life.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_life_LDADD = prov/libprov.la
%C%_tests_test_door_SOURCES = %D%/tests/test_door.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_door_LDADD = prov/libprov.la
%C%_tests_test_sleep_SOURCES = %D%/tests/test_sleep.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_sleep_LDADD = prov/libprov.la
%C%_tests_test_many_SOURCES = %D%/tests/test_many.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_many_LDADD = prov/libprov.la
%C%_tests_test_service_SOURCES = \
	%D%/tests/test_service.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_service_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_bulk_shm
TESTS += %D%/tests/test_bulk_shm
%C%_tests_test_bulk_shm_SOURCES = \
	%D%/tests/test_bulk_shm.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_bulk_shm_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_joint_shm
TESTS += %D%/tests/test_joint_shm
%C%_tests_test_joint_shm_SOURCES = \
	%D%/tests/test_joint_shm.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_test_joint_shm_LDADD = prov/libprov.la

# Figures, not a test: run by hand.
check_PROGRAMS += %D%/tests/bench_shm
%C%_tests_bench_shm_SOURCES = %D%/tests/bench_shm.c %D%/tests/rig.c %D%/tests/rig.h
%C%_tests_bench_shm_LDADD = prov/libprov.la

# Threads: the wire's helper, automatic progress, or two of the test's own.
THREAD_TESTS += \
	%D%/tests/test_ring %D%/tests/test_shm %D%/tests/test_life %D%/tests/test_door \
	%D%/tests/test_sleep %D%/tests/test_many %D%/tests/test_service \
	%D%/tests/test_joint_shm
