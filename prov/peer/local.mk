# Sources of prov/peer (libprov.la) and the unit tests beside them.
PROV_SOURCES += %D%/peer.c %D%/peer.h %D%/table.c

check_PROGRAMS += %D%/tests/test_peer
TESTS += %D%/tests/test_peer
%C%_tests_test_peer_SOURCES = %D%/tests/test_peer.c
%C%_tests_test_peer_LDADD = prov/libprov.la

EXTRA_DIST += %D%/README.md
