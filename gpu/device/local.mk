# Device-side calls: the CPU that drains the rings of kernels, and the layout of contexts.
noinst_LTLIBRARIES += gpu/libdevice.la
gpu_libdevice_la_SOURCES = %D%/desc.c %D%/desc.h %D%/devctx.c %D%/devctx.h %D%/proxy.c \
	%D%/proxy.h
EXTRA_DIST += %D%/README.md

check_PROGRAMS += %D%/tests/test_device
TESTS += %D%/tests/test_device
THREAD_TESTS += %D%/tests/test_device
%C%_tests_test_device_SOURCES = %D%/tests/test_device.c %D%/tests/fake.c %D%/tests/fake.h
%C%_tests_test_device_LDADD = gpu/libdevice.la -lpthread

# Not a test: descriptors that one thread drains in a second.
check_PROGRAMS += %D%/tests/bench_proxy
%C%_tests_bench_proxy_SOURCES = %D%/tests/bench_proxy.c
%C%_tests_bench_proxy_LDADD = gpu/libdevice.la
