# The provider. All objects go into one convenience library, which unit tests
# link to reach hidden symbols; the installed module exports fi_prov_ini only.
PROV_SOURCES =
include prov/fi/local.mk
include prov/proto/local.mk
include prov/dqplb/local.mk
include prov/peer/local.mk
include prov/mem/local.mk
include prov/wire/local.mk

noinst_LTLIBRARIES += prov/libprov.la
prov_libprov_la_SOURCES = $(PROV_SOURCES)
prov_libprov_la_LIBADD = topo/libtopo.la gpu/libgpu.la $(LIBFABRIC_LIBS) -lpthread
prov_libprov_la_LDFLAGS = -no-undefined

provdir = $(providerdir)
prov_LTLIBRARIES = prov/libweft-fi.la
prov_libweft_fi_la_SOURCES = prov/fi/ini.c
prov_libweft_fi_la_LIBADD = prov/libprov.la
# libfabric unloads its providers when the process exits, while endpoints that the
# application left open still have threads: the module's code must stay where it is.
prov_libweft_fi_la_LDFLAGS = -module -avoid-version -shared -no-undefined \
	-Wl,-z,nodelete $(WEFT_ZDEFS) -Wl,--version-script=$(top_srcdir)/prov/libweft-fi.map
EXTRA_prov_libweft_fi_la_DEPENDENCIES = prov/libweft-fi.map
EXTRA_DIST += prov/libweft-fi.map prov/README.md prov/LOCKING.md

# libtool leaves the module in prov/.libs; FI_PROVIDER_PATH=build/prov must work.
ALL_LOCAL += prov/libweft-fi.so
prov/libweft-fi.so: prov/libweft-fi.la
	$(AM_V_GEN)ln -sf .libs/libweft-fi.so $@ && touch $@
CLEANFILES += prov/libweft-fi.so
