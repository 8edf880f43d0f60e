# Kernels: the sources for GPUs, from calls to kernels (launch.c), and all of them for CPUs.
# image.c has what a compiler for GPUs made of them, where configure found one.
noinst_LTLIBRARIES += gpu/libkern.la gpu/libkerncpu.la
gpu_libkern_la_SOURCES = %D%/kern.h %D%/kern_list.h %D%/launch.c %D%/launch.h %D%/image.c
gpu_libkern_la_CPPFLAGS = $(AM_CPPFLAGS) -DKERN_IMAGE_FILE='"$(KERN_IMAGE)"'
gpu_libkerncpu_la_SOURCES = %D%/kern_cpu.c %D%/kern_cpu.h $(kern_sources)
kern_sources = %D%/kern_all.h %D%/kern_at.h %D%/kern_bits.h %D%/kern_cast.h \
	%D%/kern_copy.h %D%/kern_num.h %D%/kern_reduce.h %D%/kern_type.h
EXTRA_DIST += %D%/kernels.cu %D%/README.md

# The folder of the image may not be there yet in a build outside of the tree.
if HAVE_DEVICE_CODE
KERN_IMAGE = %D%/kernels.image
$(KERN_IMAGE): $(srcdir)/%D%/kernels.cu $(srcdir)/%D%/kern.h $(kern_sources) util/num.h
	$(AM_V_GEN)$(MKDIR_P) %D% && $(DEVICE_COMPILE) -I$(top_srcdir) -o $@.new $(srcdir)/%D%/kernels.cu && mv $@.new $@
%D%/gpu_libkern_la-image.lo %D%/libkern_la-image.lo: $(KERN_IMAGE)
CLEANFILES += $(KERN_IMAGE)
endif

check_PROGRAMS += %D%/tests/test_kernels
TESTS += %D%/tests/test_kernels
%C%_tests_test_kernels_SOURCES = %D%/tests/test_kernels.c %D%/tests/check.c %D%/tests/check.h
%C%_tests_test_kernels_LDADD = gpu/libkerncpu.la gpu/libkern.la coll/libcoll.la -lm

# What the stand-in for the driver loads as a file of kernels.
check_LTLIBRARIES += gpu/mock/libweft-mock-kernels.la
gpu_mock_libweft_mock_kernels_la_SOURCES = %D%/kern_mock.c
gpu_mock_libweft_mock_kernels_la_LIBADD = gpu/libkerncpu.la
gpu_mock_libweft_mock_kernels_la_LDFLAGS = -rpath /nowhere -module -avoid-version

# Reductions through gpu.h, on the stand-in with these.
check_PROGRAMS += gpu/tests/test_reduce
TESTS += gpu/tests/test_reduce
THREAD_TESTS += gpu/tests/test_reduce
GPU_TESTS += gpu/tests/test_reduce
gpu_tests_test_reduce_SOURCES = gpu/tests/test_reduce.c
gpu_tests_test_reduce_LDADD = $(gpu_test_libs)
EXTRA_gpu_tests_test_reduce_DEPENDENCIES = gpu/mock/libweft-mock-kernels.la
