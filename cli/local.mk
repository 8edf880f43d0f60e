# The weft command: one file per subcommand. Links the convenience library,
# because check-plans and perf --stats look inside.
bin_PROGRAMS += weft
# version.c is in libweft.so itself, not in the convenience library.
weft_SOURCES = coll/api/version.c %D%/main.c %D%/cmd.h %D%/entry.h %D%/entry.c \
	%D%/usage.h %D%/usage.c %D%/place.h %D%/place.c %D%/check_plans.c %D%/parse.h %D%/parse.c \
	%D%/run.c %D%/run_job.h %D%/run_job.c %D%/run_child.h %D%/run_child.c \
	%D%/run_out.h %D%/run_out.c %D%/run_bind.h %D%/run_bind.c \
	%D%/run_guard.h %D%/run_guard.c \
	%D%/perf.h %D%/perf.c %D%/perf_ops.c %D%/perf_data.h %D%/perf_data.c \
	%D%/tune.c %D%/stat.h %D%/stat.c %D%/stat_show.c %D%/plot.c %D%/trace.c %D%/trace_src.h %D%/trace_src.c \
	%D%/analyze.h %D%/analyze.c %D%/coordinator.c %D%/perf_measure.c %D%/perf_stages.h %D%/perf_stages.c \
	%D%/perf_counts.h %D%/perf_counts.c %D%/perf_memory.h %D%/perf_memory.c %D%/perf_report.h %D%/perf_report.c %D%/json.h %D%/json.c \
	%D%/info.h %D%/info.c %D%/info_show.c %D%/info_gpus.h %D%/info_gpus.c %D%/info_host.h %D%/info_host.c \
	%D%/info_rails.h %D%/info_rails.c %D%/info_more.h %D%/info_config.c %D%/info_choices.c \
	%D%/info_wires.c \
	%D%/sim.h %D%/sim.c %D%/sim_args.c %D%/sim_model.c \
	%D%/sim_jobs.c %D%/sim_out.c %D%/sim_parts.c %D%/sim_step.c \
	%D%/findings.h %D%/findings.c %D%/doctor.h %D%/doctor.c %D%/doctor_host.c \
	%D%/doctor_devices.c %D%/doctor_job.c \
	%D%/info_vars.h %D%/info_vars.c %D%/topo.h %D%/topo.c %D%/topo_show.c
# (its own flags: its own objects, version.c is in libweft.so as well)
weft_CFLAGS = $(AM_CFLAGS)
weft_LDADD = topo/libsim.la topo/libhost.la coll/libcoll.la $(LIBFABRIC_LIBS) -lpthread -lm

check_PROGRAMS += %D%/tests/rank_boot
TEST_HELPERS += %D%/tests/rank_boot
%C%_tests_rank_boot_SOURCES = %D%/tests/rank_boot.c
%C%_tests_rank_boot_LDADD = coll/libcoll.la
TESTS += %D%/tests/run.t
EXTRA_DIST += %D%/tests/run.t %D%/README.md

check_PROGRAMS += %D%/tests/test_json %D%/tests/test_perf_data %D%/tests/test_perf_wrong \
	%D%/tests/test_usage
TESTS += %D%/tests/test_json %D%/tests/test_perf_data %D%/tests/test_perf_wrong \
	%D%/tests/test_usage \
	%D%/tests/perf.t
EXTRA_DIST += %D%/tests/perf.t
%C%_tests_test_json_SOURCES = %D%/tests/test_json.c %D%/json.c
%C%_tests_test_json_LDADD = -lm
%C%_tests_test_usage_SOURCES = %D%/tests/test_usage.c %D%/usage.c
%C%_tests_test_perf_data_SOURCES = %D%/tests/test_perf_data.c %D%/perf_data.c
%C%_tests_test_perf_data_LDADD = coll/libcoll.la
# Has calls of its own in place of those in coll/api/collectives.c.
%C%_tests_test_perf_wrong_SOURCES = %D%/tests/test_perf_wrong.c coll/api/version.c \
	%D%/usage.c %D%/parse.c %D%/json.c %D%/perf.c %D%/perf_ops.c %D%/perf_data.c \
	%D%/perf_counts.c %D%/perf_memory.c %D%/perf_measure.c %D%/perf_stages.c \
	%D%/perf_report.c
# (its own flags: its own objects, version.c is in libweft.so as well)
%C%_tests_test_perf_wrong_CFLAGS = $(AM_CFLAGS)
%C%_tests_test_perf_wrong_LDADD = coll/libcoll.la

TESTS += %D%/tests/check_plans.t
EXTRA_DIST += %D%/tests/check_plans.t

TESTS += %D%/tests/trace.t
EXTRA_DIST += %D%/tests/trace.t

check_PROGRAMS += %D%/tests/ft_member
TEST_HELPERS += %D%/tests/ft_member
%C%_tests_ft_member_SOURCES = %D%/tests/ft_member.c
%C%_tests_ft_member_LDADD = coll/libcoll.la
TESTS += %D%/tests/coordinator.t %D%/tests/etcd.t %D%/tests/etcds.t
EXTRA_DIST += %D%/tests/coordinator.t %D%/tests/etcd.t %D%/tests/etcds.t \
	%D%/tests/etcd.sh

TESTS += %D%/tests/tune.t
EXTRA_DIST += %D%/tests/tune.t

check_PROGRAMS += %D%/tests/busy_rank
TEST_HELPERS += %D%/tests/busy_rank
%C%_tests_busy_rank_SOURCES = %D%/tests/busy_rank.c
%C%_tests_busy_rank_LDADD = coll/libcoll.la
TESTS += %D%/tests/stat.t %D%/tests/plot.t
EXTRA_DIST += %D%/tests/stat.t %D%/tests/plot.t

TESTS += %D%/tests/sim.t
EXTRA_DIST += %D%/tests/sim.t

TESTS += %D%/tests/topo.t
EXTRA_DIST += %D%/tests/topo.t

check_PROGRAMS += %D%/tests/test_place
TESTS += %D%/tests/test_place
%C%_tests_test_place_SOURCES = %D%/tests/test_place.c %D%/place.c

# bash looks for it under the name of the command.
completiondir = $(datadir)/bash-completion/completions
install-data-local:
	$(MKDIR_P) "$(DESTDIR)$(completiondir)"
	$(INSTALL_DATA) $(srcdir)/%D%/completion/weft.bash "$(DESTDIR)$(completiondir)/weft"
uninstall-local:
	rm -f "$(DESTDIR)$(completiondir)/weft"
TESTS += %D%/tests/completion.t
EXTRA_DIST += %D%/tests/completion.t %D%/completion/weft.bash

TESTS += %D%/tests/misconfigured.t
EXTRA_DIST += %D%/tests/misconfigured.t

TESTS += %D%/tests/doctor.t
EXTRA_DIST += %D%/tests/doctor.t

check_PROGRAMS += %D%/tests/json_schema
TEST_HELPERS += %D%/tests/json_schema
%C%_tests_json_schema_SOURCES = %D%/tests/json_schema.c
schemadir = $(datadir)/weft
dist_schema_DATA = %D%/schema/info.schema.json %D%/schema/perf.schema.json \
	%D%/schema/doctor.schema.json %D%/schema/sim.schema.json \
	%D%/schema/stat.schema.json \
	%D%/schema/sim_step.schema.json
TESTS += %D%/tests/schema.t %D%/tests/info.t
EXTRA_DIST += %D%/tests/schema.t %D%/tests/info.t
