# Device memory and streams: libgpu.la is what the provider and the collectives link, and
# knows no GPU; a backend is a library of its own, loaded where one is wanted.
noinst_LTLIBRARIES += gpu/libgpu.la
gpu_libgpu_la_SOURCES = %D%/gpu.h %D%/gate.c %D%/gate.h
