# The collectives library. All objects go into one convenience library, which
# unit tests link to reach hidden symbols; libweft.so exports weft_* only.
COLL_SOURCES =
include coll/api/local.mk
include coll/comm/local.mk
include coll/boot/local.mk
include coll/plan/local.mk
include coll/algo/local.mk
include coll/tune/local.mk
include coll/exec/local.mk
include coll/ft/local.mk
include coll/ftar/local.mk
include coll/grow/local.mk
include coll/trace/local.mk
include coll/analyze/local.mk
include coll/tests/local.mk

noinst_LTLIBRARIES += coll/libcoll.la
coll_libcoll_la_SOURCES = $(COLL_SOURCES)
coll_libcoll_la_LIBADD = gpu/libgpu.la $(LIBFABRIC_LIBS) -lpthread -lm

lib_LTLIBRARIES += libweft.la
libweft_la_SOURCES = coll/api/version.c
libweft_la_LIBADD = coll/libcoll.la
# -version-info: current:revision:age; bump by libtool's rules at a release.
libweft_la_LDFLAGS = -version-info 0:0:0 -no-undefined \
	$(WEFT_ZDEFS) -Wl,--version-script=$(top_srcdir)/coll/libweft.map
EXTRA_libweft_la_DEPENDENCIES = coll/libweft.map
EXTRA_DIST += coll/libweft.map
