# Sources of coll/plan (libcoll.la) and the unit tests beside them.
COLL_SOURCES += %D%/plan.h %D%/plan.c %D%/builder.c %D%/validate.c %D%/print.c \
	%D%/checker.h %D%/checker.c %D%/check_job.h %D%/check_job.c \
	%D%/check_conflict.c %D%/check_reach.c %D%/check_run.c %D%/check_proof.c \
	%D%/check_result.c %D%/check_space.h %D%/check_space.c %D%/check_set.h \
	%D%/check_set.c %D%/check_expr.h %D%/check_expr.c %D%/check_mem.h \
	%D%/check_mem.c
EXTRA_DIST += %D%/README.md
