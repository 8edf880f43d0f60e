# Programs of the tutorial, which are built by their test, as users would.
PLAIN_TESTS += %D%/examples.t
EXTRA_DIST += %D%/README.md %D%/examples.t %D%/check.h %D%/allreduce.c %D%/buckets.c %D%/experts.c \
	%D%/windows.c
