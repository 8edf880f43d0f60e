# The whole list of GPU tests, on the stand-in: part of make check, and gpu/tests/on-mock.
check_LTLIBRARIES += gpu/tests/libapp.la
gpu_tests_libapp_la_SOURCES = %D%/app.c %D%/app.h gpu/cuda/driver.c gpu/cuda/driver.h
# Whoever is linked with it loads these two.
EXTRA_gpu_tests_libapp_la_DEPENDENCIES = libweft-gpu.la gpu/mock/libcuda.la
gpu_test_libs = gpu/tests/libapp.la gpu/libgpu.la -lpthread

gpu_tests = gpu/tests/test_calls gpu/tests/test_faults gpu/tests/test_ipc \
	gpu/tests/test_itree gpu/tests/test_open gpu/tests/test_quiet gpu/tests/test_reach gpu/tests/test_reg \
	gpu/tests/test_stream
check_PROGRAMS += $(gpu_tests)
TESTS += $(gpu_tests)
THREAD_TESTS += $(gpu_tests)
# Those of other folders that belong to the list.
GPU_TESTS = $(gpu_tests)

gpu_tests_test_calls_SOURCES = %D%/test_calls.c
gpu_tests_test_calls_LDADD = $(gpu_test_libs)
gpu_tests_test_faults_SOURCES = %D%/test_faults.c
gpu_tests_test_faults_LDADD = $(gpu_test_libs)
gpu_tests_test_ipc_SOURCES = %D%/test_ipc.c
gpu_tests_test_ipc_LDADD = $(gpu_test_libs)
gpu_tests_test_itree_SOURCES = %D%/test_itree.c
gpu_tests_test_itree_LDADD = gpu/libgpu.la
gpu_tests_test_reg_SOURCES = %D%/test_reg.c
gpu_tests_test_reg_LDADD = $(gpu_test_libs)
gpu_tests_test_open_SOURCES = %D%/test_open.c
gpu_tests_test_open_LDADD = $(gpu_test_libs)
gpu_tests_test_quiet_SOURCES = %D%/test_quiet.c
gpu_tests_test_quiet_LDADD = $(gpu_test_libs)
gpu_tests_test_reach_SOURCES = %D%/test_reach.c
gpu_tests_test_reach_LDADD = $(gpu_test_libs)
gpu_tests_test_stream_SOURCES = %D%/test_stream.c
gpu_tests_test_stream_LDADD = $(gpu_test_libs)

gpu-programs: $(ALL_LOCAL) libweft-gpu.la gpu/mock/libcuda.la $(filter-out %.t,$(GPU_TESTS))
check-gpu: gpu-programs
	@rm -f $(addsuffix .log,$(basename $(GPU_TESTS))) \
		$(addsuffix .trs,$(basename $(GPU_TESTS))) $(TEST_SUITE_LOG)
	@$(MAKE) $(AM_MAKEFLAGS) $(TEST_SUITE_LOG) TESTS='$(GPU_TESTS)'
print-gpu-tests:
	@echo $(GPU_TESTS)
EXTRA_DIST += %D%/on-mock

# What the calls cost; run on machines with a GPU.
check_PROGRAMS += gpu/tests/figures
gpu_tests_figures_SOURCES = %D%/figures.c
gpu_tests_figures_LDADD = $(gpu_test_libs)
