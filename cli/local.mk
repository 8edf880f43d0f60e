# The weft command: one file per subcommand. Links the convenience library,
# because check-plans and perf --stats look inside.
bin_PROGRAMS += weft
weft_SOURCES = %D%/main.c %D%/cmd.h %D%/check_plans.c
weft_LDADD = coll/libcoll.la $(LIBFABRIC_LIBS) -lpthread -lm

TESTS += %D%/tests/check_plans.t
EXTRA_DIST += %D%/tests/check_plans.t
