# Tests of the collectives over real providers, several processes each.
EXTRA_DIST += %D%/matrix %D%/ranks.h %D%/reference.h %D%/run_case.h

check_PROGRAMS += %D%/test_collectives
TESTS += %D%/test_collectives
%C%_test_collectives_SOURCES = %D%/test_collectives.c %D%/ranks.c %D%/reference.c \
	%D%/run_case.c
%C%_test_collectives_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_modes
TESTS += %D%/test_modes
%C%_test_modes_SOURCES = %D%/test_modes.c %D%/ranks.c %D%/reference.c \
	%D%/run_case.c
%C%_test_modes_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_memory
TESTS += %D%/test_memory
%C%_test_memory_SOURCES = %D%/test_memory.c %D%/ranks.c
%C%_test_memory_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_plans
TESTS += %D%/test_plans
%C%_test_plans_SOURCES = %D%/test_plans.c %D%/ranks.c
%C%_test_plans_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_readiness
TESTS += %D%/test_readiness
%C%_test_readiness_SOURCES = %D%/test_readiness.c %D%/ranks.c %D%/reference.c \
	%D%/run_case.c
%C%_test_readiness_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_failures
TESTS += %D%/test_failures
%C%_test_failures_SOURCES = %D%/test_failures.c %D%/ranks.c
%C%_test_failures_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_arguments
TESTS += %D%/test_arguments
%C%_test_arguments_SOURCES = %D%/test_arguments.c %D%/ranks.c
%C%_test_arguments_LDADD = coll/libcoll.la -lm

# Threads: the wire's helper, automatic progress, or two of the test's own.
THREAD_TESTS += %D%/test_readiness %D%/test_modes

check_PROGRAMS += %D%/test_mismatch
TESTS += %D%/test_mismatch
%C%_test_mismatch_SOURCES = %D%/test_mismatch.c %D%/ranks.c %D%/reference.c \
	%D%/run_case.c
%C%_test_mismatch_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_past
TESTS += %D%/test_past
%C%_test_past_SOURCES = %D%/test_past.c %D%/ranks.c %D%/reference.c %D%/run_case.c
%C%_test_past_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_bulk
TESTS += %D%/test_bulk
%C%_test_bulk_SOURCES = %D%/test_bulk.c %D%/ranks.c %D%/reference.c %D%/run_case.c
%C%_test_bulk_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_quick
TESTS += %D%/test_quick
%C%_test_quick_SOURCES = %D%/test_quick.c %D%/ranks.c
%C%_test_quick_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/test_repeat
TESTS += %D%/test_repeat
%C%_test_repeat_SOURCES = %D%/test_repeat.c %D%/ranks.c %D%/reference.c %D%/run_case.c
%C%_test_repeat_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_ops
TESTS += %D%/test_ops
%C%_test_ops_SOURCES = %D%/test_ops.c %D%/ranks.c
%C%_test_ops_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_messages
TESTS += %D%/test_messages
%C%_test_messages_SOURCES = %D%/test_messages.c %D%/ranks.c
%C%_test_messages_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/test_persistent
TESTS += %D%/test_persistent
%C%_test_persistent_SOURCES = %D%/test_persistent.c %D%/ranks.c %D%/reference.c \
	%D%/run_case.c
%C%_test_persistent_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_split
TESTS += %D%/test_split
%C%_test_split_SOURCES = %D%/test_split.c %D%/ranks.c %D%/reference.c %D%/run_case.c
%C%_test_split_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_dynamic
TESTS += %D%/test_dynamic
%C%_test_dynamic_SOURCES = %D%/test_dynamic.c %D%/dynamic_case.c %D%/ranks.c
%C%_test_dynamic_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/test_groups
TESTS += %D%/test_groups
%C%_test_groups_SOURCES = %D%/test_groups.c %D%/ranks.c
%C%_test_groups_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/test_windows
TESTS += %D%/test_windows
%C%_test_windows_SOURCES = %D%/test_windows.c %D%/ranks.c
%C%_test_windows_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/test_async
TESTS += %D%/test_async
THREAD_TESTS += %D%/test_async
%C%_test_async_SOURCES = %D%/test_async.c %D%/ranks.c %D%/reference.c %D%/run_case.c
%C%_test_async_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_lines
TESTS += %D%/test_lines
%C%_test_lines_SOURCES = %D%/test_lines.c %D%/ranks.c %D%/reference.c %D%/run_case.c
%C%_test_lines_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_nodes
TESTS += %D%/test_nodes
%C%_test_nodes_SOURCES = %D%/test_nodes.c %D%/ranks.c %D%/reference.c %D%/run_case.c
%C%_test_nodes_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_order
TESTS += %D%/test_order
%C%_test_order_SOURCES = %D%/test_order.c %D%/ranks.c
%C%_test_order_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/test_overlap
TESTS += %D%/test_overlap
THREAD_TESTS += %D%/test_overlap
%C%_test_overlap_SOURCES = %D%/test_overlap.c %D%/ranks.c
%C%_test_overlap_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/test_many
TESTS += %D%/test_many
%C%_test_many_SOURCES = %D%/test_many.c %D%/ranks.c
%C%_test_many_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/test_foreign
TESTS += %D%/test_foreign
%C%_test_foreign_SOURCES = %D%/test_foreign.c %D%/ranks.c
%C%_test_foreign_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/test_double
TESTS += %D%/test_double
%C%_test_double_SOURCES = %D%/test_double.c %D%/ranks.c %D%/reference.c %D%/run_case.c
%C%_test_double_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_revoke
TESTS += %D%/test_revoke
THREAD_TESTS += %D%/test_revoke
%C%_test_revoke_SOURCES = %D%/test_revoke.c %D%/ranks.c
%C%_test_revoke_LDADD = coll/libcoll.la

check_PROGRAMS += %D%/test_wrong
TESTS += %D%/test_wrong
%C%_test_wrong_SOURCES = %D%/test_wrong.c %D%/ranks.c %D%/reference.c %D%/run_case.c
%C%_test_wrong_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_shrink
TESTS += %D%/test_shrink
%C%_test_shrink_SOURCES = %D%/test_shrink.c %D%/ranks.c
%C%_test_shrink_LDADD = coll/libcoll.la

# A backend of gpu.h whose device memory no processor may touch.
EXTRA_DIST += %D%/guarded_gpu.h %D%/device_case.h %D%/dynamic_case.h
check_LTLIBRARIES += %D%/libguarded-gpu.la
%C%_libguarded_gpu_la_LDFLAGS = -rpath /nowhere -module -avoid-version -Wl,-z,nodelete
%C%_libguarded_gpu_la_SOURCES = %D%/guarded_gpu.c
%C%_libguarded_gpu_la_LIBADD = -lpthread

check_PROGRAMS += %D%/test_device
TESTS += %D%/test_device
%C%_test_device_SOURCES = %D%/test_device.c %D%/device_case.c %D%/ranks.c %D%/reference.c \
	%D%/run_case.c
%C%_test_device_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_stream
TESTS += %D%/test_stream
THREAD_TESTS += %D%/test_stream
%C%_test_stream_SOURCES = %D%/test_stream.c %D%/device_case.c %D%/ranks.c \
	%D%/reference.c %D%/run_case.c
%C%_test_stream_LDADD = coll/libcoll.la -lm

check_PROGRAMS += %D%/test_dynamic_gpu
TESTS += %D%/test_dynamic_gpu
THREAD_TESTS += %D%/test_dynamic_gpu
%C%_test_dynamic_gpu_SOURCES = %D%/test_dynamic_gpu.c %D%/dynamic_case.c %D%/device_case.c \
	%D%/ranks.c %D%/reference.c %D%/run_case.c
%C%_test_dynamic_gpu_LDADD = coll/libcoll.la -lm
EXTRA_%C%_test_dynamic_gpu_DEPENDENCIES = %D%/libguarded-gpu.la

check_PROGRAMS += %D%/test_graph
TESTS += %D%/test_graph
THREAD_TESTS += %D%/test_graph
%C%_test_graph_SOURCES = %D%/test_graph.c %D%/dynamic_case.c %D%/ranks.c
%C%_test_graph_LDADD = coll/libcoll.la gpu/tests/libapp.la -lm

check_PROGRAMS += %D%/test_hold
TESTS += %D%/test_hold
THREAD_TESTS += %D%/test_hold
%C%_test_hold_SOURCES = %D%/test_hold.c %D%/ranks.c
%C%_test_hold_LDADD = coll/libcoll.la gpu/tests/libapp.la -lm

GPU_TESTS += %D%/test_device %D%/test_dynamic_gpu %D%/test_graph %D%/test_hold %D%/test_stream
EXTRA_%C%_test_device_DEPENDENCIES = %D%/libguarded-gpu.la
EXTRA_%C%_test_stream_DEPENDENCIES = %D%/libguarded-gpu.la
