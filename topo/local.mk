# Topology: libtopo.la, which knows nothing of libfabric and nothing of Weft's other parts.
noinst_LTLIBRARIES += topo/libtopo.la
topo_libtopo_la_SOURCES = \
	%D%/fabric/map.c %D%/fabric/map.h %D%/fabric/map_read.h %D%/fabric/map_tier.c \
	%D%/fabric/place.c %D%/fabric/place.h

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
