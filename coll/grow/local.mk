# Sources of coll/grow (libcoll.la) and the tests beside them.
COLL_SOURCES += %D%/gate_wire.h %D%/gate_wire.c %D%/gate.h %D%/gate.c %D%/grow.c
EXTRA_DIST += %D%/README.md

check_PROGRAMS += %D%/tests/test_gate_wire
TESTS += %D%/tests/test_gate_wire
%C%_tests_test_gate_wire_SOURCES = %D%/tests/test_gate_wire.c
%C%_tests_test_gate_wire_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/tests/test_grow
TESTS += %D%/tests/test_grow
%C%_tests_test_grow_SOURCES = %D%/tests/test_grow.c coll/tests/ranks.c
%C%_tests_test_grow_LDADD = coll/libcoll.la
