# Device memory and streams: libgpu.la is what the provider and the collectives link, and
# knows no GPU; the backend is a library of its own, loaded where a GPU is wanted.
noinst_LTLIBRARIES += gpu/libgpu.la
gpu_libgpu_la_SOURCES = %D%/gpu.c %D%/gpu.h %D%/gate.c %D%/gate.h %D%/quiet.c %D%/quiet.h \
	%D%/itree.c %D%/itree.h %D%/reg.c %D%/reg.h \
	%D%/null/null.c %D%/null/null.h
gpu_libgpu_la_LIBADD = -ldl

# Needs nothing of CUDA to be built, and no CUDA to be loaded.
lib_LTLIBRARIES += libweft-gpu.la
libweft_gpu_la_SOURCES = %D%/cuda/cuda.c %D%/cuda/cuda.h %D%/cuda/cuda_error.c \
	%D%/cuda/cuda_hold.c %D%/cuda/cuda_ipc.c %D%/cuda/cuda_kernel.c %D%/cuda/cuda_mem.c \
	%D%/cuda/cuda_prepare.c %D%/cuda/cuda_query.c %D%/cuda/cuda_queue.c \
	%D%/cuda/cuda_reduce.c %D%/cuda/cuda_reduce.h %D%/cuda/cuda_stream.c \
	%D%/cuda/driver.c %D%/cuda/driver.h %D%/cuda/image.h
libweft_gpu_la_LIBADD = gpu/libkern.la -lpthread -ldl
# Threads of the driver may be in it until the process ends.
libweft_gpu_la_LDFLAGS = -module -avoid-version -shared -no-undefined -Wl,-z,nodelete \
	$(WEFT_ZDEFS) -Wl,--version-script=$(top_srcdir)/gpu/libweft-gpu.map
EXTRA_libweft_gpu_la_DEPENDENCIES = gpu/libweft-gpu.map
EXTRA_DIST += %D%/libweft-gpu.map %D%/README.md

# The stand-in for the driver. Not where it is installed: a path at all makes it a shared
# library. Its streams are threads, so who loaded it does not unload it.
check_LTLIBRARIES += gpu/mock/libcuda.la
gpu_mock_libcuda_la_SOURCES = %D%/mock/mock.c %D%/mock/mock.h %D%/mock/mock_api.h \
	%D%/mock/mock_graph.c %D%/mock/mock_idle.c %D%/mock/mock_int.h %D%/mock/mock_map.c \
	%D%/mock/mock_mem.c %D%/mock/place.h \
	%D%/mock/mock_stream.c %D%/mock/mock_table.c %D%/mock/mock_work.c
gpu_mock_libcuda_la_LIBADD = -lpthread -ldl
gpu_mock_libcuda_la_LDFLAGS = -rpath /nowhere -version-info 1:0:0 -Wl,-z,nodelete
EXTRA_DIST += %D%/mock/README.md

include gpu/tests/local.mk
include gpu/cuda/kernels/local.mk
include gpu/device/local.mk
EXTRA_DIST += %D%/test-on-gpu %D%/on-gpu/dev.c %D%/on-gpu/dev.h %D%/on-gpu/device.c \
	%D%/on-gpu/device.cu %D%/on-gpu/figures.c %D%/on-gpu/kernels.c %D%/on-gpu/probe.cu
