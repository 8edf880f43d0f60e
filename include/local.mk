weftincludedir = $(includedir)/weft
weftinclude_HEADERS = %D%/weft/weft.h
