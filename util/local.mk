# Leaf headers that know nothing of Weft: anyone may include them.
EXTRA_DIST += %D%/be.h %D%/copy.h %D%/fd.h %D%/fi_names.h %D%/le.h %D%/list.h %D%/lock_note.h %D%/num.h %D%/prefetch.h %D%/span.h \
	%D%/tap.h %D%/tap_fork.h %D%/ticks.h
