# Sources of the uet wire's protocol (libprov.la) and the unit tests beside them.
PROV_SOURCES += \
	%D%/uet_nscc.c %D%/uet_nscc.h \
	%D%/uet_path.c %D%/uet_path.h \
	%D%/uet_wire.c %D%/uet_wire.h %D%/uet_wire_put.c

check_PROGRAMS += \
	%D%/tests/test_uet_nscc %D%/tests/test_uet_path %D%/tests/test_uet_wire
TESTS += \
	%D%/tests/test_uet_nscc %D%/tests/test_uet_path %D%/tests/test_uet_wire
%C%_tests_test_uet_nscc_SOURCES = %D%/tests/test_uet_nscc.c
%C%_tests_test_uet_nscc_LDADD = prov/libprov.la
%C%_tests_test_uet_path_SOURCES = %D%/tests/test_uet_path.c
%C%_tests_test_uet_path_LDADD = prov/libprov.la
%C%_tests_test_uet_wire_SOURCES = %D%/tests/test_uet_wire.c
%C%_tests_test_uet_wire_LDADD = prov/libprov.la

EXTRA_DIST += %D%/README.md
