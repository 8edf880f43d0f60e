# The whole list of GPU tests, on the stand-in.
check_LTLIBRARIES += gpu/tests/libapp.la
gpu_tests_libapp_la_SOURCES = %D%/app.c %D%/app.h gpu/cuda/driver.c gpu/cuda/driver.h
gpu_test_libs = gpu/tests/libapp.la gpu/libgpu.la -lpthread

gpu_tests = gpu/tests/test_calls gpu/tests/test_ipc gpu/tests/test_open gpu/tests/test_reach \
	gpu/tests/test_stream
check_PROGRAMS += $(gpu_tests)
TESTS += $(gpu_tests)
THREAD_TESTS += $(gpu_tests)

gpu_tests_test_calls_SOURCES = %D%/test_calls.c
gpu_tests_test_calls_LDADD = $(gpu_test_libs)
gpu_tests_test_ipc_SOURCES = %D%/test_ipc.c
gpu_tests_test_ipc_LDADD = $(gpu_test_libs)
gpu_tests_test_open_SOURCES = %D%/test_open.c
gpu_tests_test_open_LDADD = $(gpu_test_libs)
gpu_tests_test_reach_SOURCES = %D%/test_reach.c
gpu_tests_test_reach_LDADD = $(gpu_test_libs)
gpu_tests_test_stream_SOURCES = %D%/test_stream.c
gpu_tests_test_stream_LDADD = $(gpu_test_libs)
