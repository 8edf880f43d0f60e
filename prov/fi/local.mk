# Sources of prov/fi (libprov.la) and the unit tests beside them.
PROV_SOURCES += \
	%D%/addr_resolve.c %D%/addr_resolve.h \
	%D%/av.c %D%/av.h %D%/av_int.h %D%/av_names.c \
	%D%/av_table.c %D%/av_table.h \
	%D%/cntr.c %D%/cntr.h \
	%D%/cq.c %D%/cq.h %D%/cq_int.h %D%/cq_read.c \
	%D%/domain.c %D%/domain.h \
	%D%/ep.c %D%/ep.h %D%/ep_int.h \
	%D%/ep_bind.c %D%/ep_control.c %D%/ep_done.c %D%/ep_msg.c \
	%D%/ep_nosys.c %D%/ep_rma.c %D%/ep_tagged.c \
	%D%/eq.c %D%/eq.h \
	%D%/fabric.c %D%/fabric.h \
	%D%/info.c %D%/info.h \
	%D%/info_match.c %D%/info_match.h \
	%D%/limits.h \
	%D%/mr.c %D%/mr.h \
	%D%/nosys.c %D%/nosys.h \
	%D%/pollable.h \
	%D%/progress.c %D%/progress.h \
	%D%/wait.c %D%/wait.h
