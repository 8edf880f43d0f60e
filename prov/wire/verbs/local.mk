# Sources of the verbs wire and the unit tests beside them. Cards and doors need no header
# of libibverbs and are built everywhere.
PROV_SOURCES += \
	%D%/verbs_auth.h \
	%D%/verbs_card.h \
	%D%/verbs_door.h \
	%D%/verbs_helper.h
if HAVE_VERBS
PROV_SOURCES += \
	%D%/verbs_dev.h \
	%D%/verbs_lib.h \
	%D%/verbs_ooo.h
endif
