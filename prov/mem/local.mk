# Sources of prov/mem (libprov.la) and the unit tests beside them.
PROV_SOURCES += %D%/keytab.c %D%/keytab.h %D%/keytab_format.h %D%/keytab_own.h \
	%D%/keyview.c %D%/memfd.c %D%/memfd.h

EXTRA_DIST += %D%/README.md

check_PROGRAMS += %D%/tests/test_keytab
TESTS += %D%/tests/test_keytab
%C%_tests_test_keytab_SOURCES = %D%/tests/test_keytab.c
%C%_tests_test_keytab_LDADD = prov/libprov.la
