# Sources of prov/mem (libprov.la) and the unit tests beside them.
PROV_SOURCES += %D%/params.c %D%/params.h
PROV_SOURCES += %D%/keytab.c %D%/keytab.h %D%/keytab_format.h %D%/keytab_own.h \
	%D%/keyview.c %D%/memfd.c %D%/memfd.h
