# Sources of prov/mem (libprov.la) and the unit tests beside them.
PROV_SOURCES += %D%/params.c %D%/params.h

check_PROGRAMS += %D%/tests/test_params
TESTS += %D%/tests/test_params
%C%_tests_test_params_SOURCES = %D%/tests/test_params.c
%C%_tests_test_params_LDADD = prov/libprov.la
