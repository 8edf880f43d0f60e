# The wire contract, and one folder per wire.
PROV_SOURCES += %D%/wire.h %D%/addr.c %D%/addr.h %D%/iface.c %D%/iface.h %D%/wires.c \
	%D%/joined.c %D%/joined.h
include prov/wire/shm/local.mk
include prov/wire/verbs/local.mk
include prov/wire/uet/local.mk
include prov/wire/uet/linux.mk

EXTRA_DIST += %D%/README.md

check_PROGRAMS += %D%/tests/test_addr
TESTS += %D%/tests/test_addr %D%/tests/iface.t
EXTRA_DIST += %D%/tests/iface.t
%C%_tests_test_addr_SOURCES = %D%/tests/test_addr.c
%C%_tests_test_addr_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_joined
TESTS += %D%/tests/test_joined
%C%_tests_test_joined_SOURCES = %D%/tests/test_joined.c
%C%_tests_test_joined_LDADD = prov/libprov.la
