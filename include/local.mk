weftincludedir = $(includedir)/weft
weftinclude_HEADERS = %D%/weft/weft.h %D%/weft/weft_dynamic.h \
	%D%/weft/weft_persistent.h %D%/weft/weft_ft.h %D%/weft/weft_elastic.h %D%/weft/weft_gpu.h %D%/weft/weft_overlap.h %D%/weft/weft_win.h %D%/weft/weft_fi.h

# Calls from inside of kernels: installed when a context for them can be had from the library.
EXTRA_DIST += %D%/weft/weft_device.cuh %D%/weft/weft_device_ring.h
