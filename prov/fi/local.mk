# Sources of prov/fi (libprov.la) and the unit tests beside them.
PROV_SOURCES += \
	%D%/addr_resolve.c %D%/addr_resolve.h \
	%D%/atomic.c %D%/atomic.h \
	%D%/av.c %D%/av.h %D%/av_int.h %D%/av_mirror.c %D%/av_names.c \
	%D%/av_share.c %D%/av_share.h \
	%D%/av_table.c %D%/av_table.h \
	%D%/cntr.c %D%/cntr.h \
	%D%/cq.c %D%/cq.h %D%/cq_int.h %D%/cq_read.c %D%/cq_read_template.h \
	%D%/domain.c %D%/domain.h \
	%D%/ep.c %D%/ep.h %D%/ep_int.h \
	%D%/ep_alias.c %D%/ep_atomic.c %D%/ep_bind.c %D%/ep_control.c %D%/ep_done.c %D%/ep_fast.c \
	%D%/ep_fast_more.c %D%/ep_fast_rma.c %D%/ep_msg.c \
	%D%/ep_nosys.c %D%/ep_option.c %D%/ep_option.h %D%/ep_peek.c %D%/ep_rma.c %D%/ep_tagged.c \
	%D%/eq.c %D%/eq.h \
	%D%/fabric.c %D%/fabric.h \
	%D%/import.c %D%/import.h %D%/import_srx.c \
	%D%/entry.c %D%/entry.h \
	%D%/nic.c %D%/nic.h \
	%D%/info.c %D%/info.h \
	%D%/info_match.c %D%/info_match.h \
	%D%/limits.h \
	%D%/count_ops.c %D%/count_ops.h %D%/mem_ops.c %D%/mem_ops.h \
	%D%/mr.c %D%/mr.h \
	%D%/newer.h \
	%D%/nosys.c %D%/nosys.h \
	%D%/poll_set.c %D%/poll_set.h \
	%D%/pollable.h \
	%D%/progress.c %D%/progress.h \
	%D%/raw_key.c %D%/raw_key.h \
	%D%/sep.c %D%/sep.h \
	%D%/srx.c %D%/srx.h \
	%D%/stx.c %D%/stx.h \
	%D%/wait.c %D%/wait.h \
	%D%/wait_cond.c %D%/wait_cond.h \
	%D%/wait_set.c %D%/wait_set.h \
	%D%/work.c %D%/work.h %D%/work_int.h %D%/work_make.c

EXTRA_DIST += %D%/README.md

# A domain without libfabric in front of it, and an engine to drive.
FI_TEST_SOURCES = %D%/tests/fi_test.c %D%/tests/fi_test.h

check_PROGRAMS += %D%/tests/test_av %D%/tests/test_cntr %D%/tests/test_cond %D%/tests/test_cq \
	%D%/tests/test_eq %D%/tests/test_info %D%/tests/test_module %D%/tests/test_mr \
	%D%/tests/test_progress %D%/tests/test_wait
TESTS += %D%/tests/test_av %D%/tests/test_cntr %D%/tests/test_cond %D%/tests/test_cq \
	%D%/tests/test_eq %D%/tests/test_info %D%/tests/test_module %D%/tests/test_mr \
	%D%/tests/test_progress %D%/tests/test_wait
%C%_tests_test_av_SOURCES = %D%/tests/test_av.c $(FI_TEST_SOURCES)
%C%_tests_test_av_LDADD = prov/libprov.la
%C%_tests_test_cntr_SOURCES = %D%/tests/test_cntr.c $(FI_TEST_SOURCES)
%C%_tests_test_cntr_LDADD = prov/libprov.la
%C%_tests_test_cond_SOURCES = %D%/tests/test_cond.c $(FI_TEST_SOURCES)
%C%_tests_test_cond_LDADD = prov/libprov.la
%C%_tests_test_cq_SOURCES = %D%/tests/test_cq.c $(FI_TEST_SOURCES)
%C%_tests_test_cq_LDADD = prov/libprov.la
%C%_tests_test_eq_SOURCES = %D%/tests/test_eq.c $(FI_TEST_SOURCES)
%C%_tests_test_eq_LDADD = prov/libprov.la
%C%_tests_test_info_SOURCES = %D%/tests/test_info.c $(FI_TEST_SOURCES)
%C%_tests_test_info_LDADD = prov/libprov.la
%C%_tests_test_mr_SOURCES = %D%/tests/test_mr.c $(FI_TEST_SOURCES)
%C%_tests_test_mr_LDADD = prov/libprov.la
%C%_tests_test_progress_SOURCES = %D%/tests/test_progress.c $(FI_TEST_SOURCES)
%C%_tests_test_progress_LDADD = prov/libprov.la
%C%_tests_test_wait_SOURCES = %D%/tests/test_wait.c $(FI_TEST_SOURCES)
%C%_tests_test_wait_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_import
TESTS += %D%/tests/test_import
%C%_tests_test_import_SOURCES = %D%/tests/test_import.c $(FI_TEST_SOURCES)
%C%_tests_test_import_LDADD = prov/libprov.la

# Looks at the module as libfabric does.
%C%_tests_test_module_SOURCES = %D%/tests/test_module.c
%C%_tests_test_module_LDADD = $(LIBFABRIC_LIBS) -ldl -lpthread
%C%_tests_test_module_DEPENDENCIES = prov/libweft-fi.so

check_PROGRAMS += %D%/tests/test_ep
TESTS += %D%/tests/test_ep
%C%_tests_test_ep_SOURCES = %D%/tests/test_ep.c
%C%_tests_test_ep_LDADD = $(LIBFABRIC_LIBS) -lpthread

# Threads: the wire's helper, automatic progress, or two of the test's own.
THREAD_TESTS += %D%/tests/test_av %D%/tests/test_cntr %D%/tests/test_cq \
	%D%/tests/test_eq %D%/tests/test_ep %D%/tests/test_module %D%/tests/test_mr \
	%D%/tests/test_progress %D%/tests/test_wait %D%/tests/test_cond \
	%D%/tests/test_threads

# What the provider does for an application with threads, and without.
FI_END_SOURCES = %D%/tests/end.c %D%/tests/end.h

check_PROGRAMS += %D%/tests/test_threads %D%/tests/test_spared %D%/tests/test_counts
TESTS += %D%/tests/test_threads %D%/tests/test_spared %D%/tests/test_counts
%C%_tests_test_counts_SOURCES = %D%/tests/test_counts.c $(FI_END_SOURCES)
%C%_tests_test_counts_LDADD = $(LIBFABRIC_LIBS) -lpthread
%C%_tests_test_threads_SOURCES = %D%/tests/test_threads.c $(FI_END_SOURCES)
%C%_tests_test_threads_LDADD = $(LIBFABRIC_LIBS) -lpthread
%C%_tests_test_spared_SOURCES = %D%/tests/test_spared.c $(FI_END_SOURCES)
%C%_tests_test_spared_LDADD = $(LIBFABRIC_LIBS) -ldl -lpthread
%C%_tests_test_spared_LDFLAGS = -Wl,--export-dynamic

# Memory of GPUs, on the stand-in for a driver (gpu/tests/on-mock has it as well).
check_PROGRAMS += %D%/tests/test_hmem
TESTS += %D%/tests/test_hmem
THREAD_TESTS += %D%/tests/test_hmem
GPU_TESTS += %D%/tests/test_hmem
%C%_tests_test_hmem_SOURCES = %D%/tests/test_hmem.c %D%/tests/hmem_pair.c %D%/tests/hmem_pair.h
%C%_tests_test_hmem_LDADD = gpu/tests/libapp.la gpu/libgpu.la $(LIBFABRIC_LIBS) -lpthread
EXTRA_prov_fi_tests_test_hmem_DEPENDENCIES = prov/libweft-fi.so

check_PROGRAMS += %D%/tests/test_sets
TESTS += %D%/tests/test_sets
THREAD_TESTS += %D%/tests/test_sets
%C%_tests_test_sets_SOURCES = %D%/tests/test_sets.c $(FI_TEST_SOURCES)
%C%_tests_test_sets_LDADD = prov/libprov.la

check_PROGRAMS += %D%/tests/test_av_share
TESTS += %D%/tests/test_av_share
%C%_tests_test_av_share_SOURCES = %D%/tests/test_av_share.c
%C%_tests_test_av_share_LDADD = prov/libprov.la
