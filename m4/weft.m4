# SPDX-License-Identifier: BSD-2-Clause
# Macros of Weft's configure. Each feature ends as one row of the table that
# configure prints last: WEFT_ROW(feature, state, what that means).

# WEFT_ROW(feature, state, meaning): all three are expanded by the shell.
AC_DEFUN([WEFT_ROW], [dnl
weft_rows="${weft_rows}$1|$2|$3
"])

# WEFT_PKG_PREFIX(name, pkg-config module, prefix)
# Lets pkg-config find the module under prefix, and nowhere else: a prefix that was
# named and is not used would be worse than an error. Programs built here find the
# libraries of that prefix at run time too (-rpath), as whoever names it expects.
AC_DEFUN([WEFT_PKG_PREFIX], [dnl
weft_dir=
for weft_try in "$3"/lib/pkgconfig "$3"/lib64/pkgconfig "$3"/lib/*/pkgconfig "$3"/share/pkgconfig; do
  AS_IF([test -z "$weft_dir" && test -f "$weft_try/$2.pc"], [weft_dir=$weft_try])
done
AS_IF([test -z "$weft_dir"],
  [AC_MSG_ERROR([--with-$1=$3: looked for lib/pkgconfig/$2.pc under that prefix and found none. Give the prefix that $1 was installed with, or leave the option out to use the system's.])])
PKG_CONFIG_PATH="$weft_dir${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
export PKG_CONFIG_PATH
weft_rpath="-Wl,-rpath,`dirname "$weft_dir"`"])

# WEFT_OPT_PKG(name, pkg-config spec, what it means when absent, what it gives)
# An optional library: --with-NAME[=PATH|no]. Asked for and missing is an error; not
# asked for and missing is a row in the table. Defines HAVE_NAME in config.h, an
# automake conditional of the same name, and substitutes NAME_CFLAGS and NAME_LIBS.
# The module that names the .pc file is the first word of the spec.
AC_DEFUN([WEFT_OPT_PKG], [dnl
m4_pushdef([weft_NAME], m4_toupper([$1]))dnl
m4_pushdef([weft_MOD], m4_bpatsubst([$2], [ .*]))dnl
AC_ARG_WITH([$1],
  [AS_HELP_STRING([--with-$1@<:@=PATH|no@:>@], [use $1 (from the prefix PATH); default: if it is there])],
  [], [with_$1=auto])
weft_have=no
weft_rpath=
weft_save_path=$PKG_CONFIG_PATH
AS_CASE(["$with_$1"],
  [no], [weft_NAME[]_CFLAGS= weft_NAME[]_LIBS=],
  [auto|yes], [],
  [/*], [WEFT_PKG_PREFIX([$1], weft_MOD, [$with_$1])],
  [AC_MSG_ERROR([--with-$1=$with_$1: want "yes", "no" or an absolute prefix])])
AS_IF([test "x$with_$1" != xno],
  [PKG_CHECK_MODULES(weft_NAME, [$2], [weft_have=yes], [weft_have=no])])
PKG_CONFIG_PATH=$weft_save_path
AS_IF([test "x$weft_have" = xno && test "x$with_$1" != xno && test "x$with_$1" != xauto],
  [AC_MSG_ERROR([--with-$1 was asked for, but pkg-config does not find "$2": ${weft_NAME[]_PKG_ERRORS:-no reason given}. Install its development files, name its prefix with --with-$1=PATH, or leave the option out.])])
AS_IF([test "x$weft_have" = xyes],
  [weft_NAME[]_LIBS="$weft_rpath $weft_NAME[]_LIBS"
   AC_DEFINE([HAVE_]weft_NAME, [1], [Define to 1 if $1 is used.])
   WEFT_ROW([$1], [found], [$4])],
  [weft_NAME[]_CFLAGS= weft_NAME[]_LIBS=
   AS_IF([test "x$with_$1" = xno],
     [WEFT_ROW([$1], [turned off], [$3])],
     [WEFT_ROW([$1], [not found], [$3])])])
AC_SUBST(weft_NAME[_CFLAGS])
AC_SUBST(weft_NAME[_LIBS])
AM_CONDITIONAL([HAVE_]weft_NAME, [test "x$weft_have" = xyes])
m4_popdef([weft_MOD])dnl
m4_popdef([weft_NAME])dnl
])

# WEFT_MUST_PKG(name, pkg-config spec, how to get it, what it gives)
# A library without which nothing can be built: --with-NAME[=PATH].
AC_DEFUN([WEFT_MUST_PKG], [dnl
m4_pushdef([weft_NAME], m4_toupper([$1]))dnl
m4_pushdef([weft_MOD], m4_bpatsubst([$2], [ .*]))dnl
AC_ARG_WITH([$1],
  [AS_HELP_STRING([--with-$1@<:@=PATH@:>@], [use $1 (from the prefix PATH); it cannot be left out])],
  [], [with_$1=yes])
weft_rpath=
weft_save_path=$PKG_CONFIG_PATH
AS_CASE(["$with_$1"],
  [no], [AC_MSG_ERROR([--with-$1=no: Weft cannot be built without $1])],
  [yes], [],
  [/*], [WEFT_PKG_PREFIX([$1], weft_MOD, [$with_$1])],
  [AC_MSG_ERROR([--with-$1=$with_$1: want an absolute prefix])])
weft_$1_dir=
AS_IF([test -n "$weft_rpath"], [weft_$1_dir=$weft_dir])
PKG_CHECK_MODULES(weft_NAME, [$2], [],
  [AC_MSG_ERROR([Weft needs "$2", but pkg-config says: ${weft_NAME[]_PKG_ERRORS:-nothing}. $3])])
PKG_CONFIG_PATH=$weft_save_path
weft_NAME[]_LIBS="$weft_rpath $weft_NAME[]_LIBS"
WEFT_ROW([$1], [found], [$4])
AC_SUBST(weft_NAME[_CFLAGS])
# Tests find the programs of a prefix that was named.
weft_NAME[_PATH]=
AS_IF([test -n "$weft_$1_dir"], [weft_NAME[_PATH]=$with_$1/bin:])
AC_SUBST(weft_NAME[_PATH])
AC_SUBST(weft_NAME[_LIBS])
m4_popdef([weft_MOD])dnl
m4_popdef([weft_NAME])dnl
])

# WEFT_LIBFABRIC: what the libfabric that was found has beyond 1.17. Adds to WEFT_CFLAGS what
# its headers need: 2.x marks calls as deprecated that a provider must go on to have.
AC_DEFUN([WEFT_LIBFABRIC], [dnl
weft_save_CPPFLAGS=$CPPFLAGS
CPPFLAGS="$CPPFLAGS $LIBFABRIC_CFLAGS"
AC_CHECK_MEMBERS([struct fi_cq_err_entry.src_addr], [], [], [[#include <rdma/fi_eq.h>]])
AC_CHECK_MEMBERS([struct fi_ops_av.set_user_id], [], [], [[#include <rdma/fi_domain.h>]])
AC_CHECK_MEMBERS([struct fi_domain_attr.max_group_id], [], [], [[#include <rdma/fabric.h>]])
AC_CHECK_TYPES([struct fi_peer_match_attr],
  [WEFT_ROW([FI_PEER], [found], [other providers (lnx) can have Weft behind their queues])],
  [WEFT_ROW([FI_PEER], [not there], [needs libfabric 2.0; no provider can have Weft behind its queues])],
  [[#include <rdma/providers/fi_peer.h>]])
AC_PREPROC_IFELSE([AC_LANG_SOURCE([[
#include <rdma/fabric.h>
#if FI_MAJOR_VERSION < 2
#error it marks nothing
#endif
]])], [weft_fi_CFLAGS=-Wno-deprecated-declarations], [weft_fi_CFLAGS=])
CPPFLAGS=$weft_save_CPPFLAGS])

# WEFT_VERBS: --with-verbs[=PATH|no], peers on other hosts by RDMA devices. Only the headers
# of libibverbs are needed: the library is loaded when the provider runs. Defines HAVE_VERBS,
# and HAVE_MLX5DV where the header of the vendor's library is there too.
AC_DEFUN([WEFT_VERBS], [dnl
AC_ARG_WITH([verbs],
  [AS_HELP_STRING([--with-verbs@<:@=PATH|no@:>@], [peers on other hosts by libibverbs (its headers under PATH/include); default: if they are there])],
  [], [with_verbs=auto])
VERBS_CFLAGS=
AS_CASE(["$with_verbs"],
  [no|auto|yes], [],
  [/*],
  [AS_IF([test ! -f "$with_verbs/include/infiniband/verbs.h"],
     [AC_MSG_ERROR([--with-verbs=$with_verbs: looked for include/infiniband/verbs.h under that prefix and found none. Give the prefix that libibverbs was installed with, or leave the option out to use the system's.])])
   VERBS_CFLAGS=-I$with_verbs/include],
  [AC_MSG_ERROR([--with-verbs=$with_verbs: want "yes", "no" or an absolute prefix])])
weft_have=no
weft_save_CPPFLAGS=$CPPFLAGS
CPPFLAGS="$CPPFLAGS $VERBS_CFLAGS"
AS_IF([test "x$with_verbs" != xno],
  [AC_CHECK_TYPES([struct ibv_gid_entry], [weft_have=yes], [],
     [[#include <infiniband/verbs.h>]])])
AS_IF([test "x$weft_have" = xno && test "x$with_verbs" != xno && test "x$with_verbs" != xauto],
  [AC_MSG_ERROR([--with-verbs was asked for, but there is no infiniband/verbs.h that has struct ibv_gid_entry. Install the headers of libibverbs 33 or newer (Debian and Ubuntu: libibverbs-dev), name their prefix with --with-verbs=PATH, or leave the option out.])])
AS_IF([test "x$weft_have" = xyes],
  [AC_DEFINE([HAVE_VERBS], [1], [Define to 1 if there are libibverbs' headers.])
   AC_CHECK_HEADERS([infiniband/mlx5dv.h],
     [AC_CHECK_DECLS([MLX5DV_CONTEXT_MASK_OOO_RECV_WRS], [], [],
        [[#include <infiniband/mlx5dv.h>]])])
   WEFT_ROW([verbs], [found], [peers on other hosts, where libibverbs finds a device at run time])],
  [VERBS_CFLAGS=
   AS_IF([test "x$with_verbs" = xno], [weft_verbs=["turned off"]], [weft_verbs=["not found"]])
   WEFT_ROW([verbs], [$weft_verbs], [no peers on other hosts by RDMA devices])])
CPPFLAGS=$weft_save_CPPFLAGS
AC_SUBST([VERBS_CFLAGS])
AM_CONDITIONAL([HAVE_VERBS], [test "x$weft_have" = xyes])])

# WEFT_KERNELS: kernels for GPUs, by --with-nvcc[=PATH|no] or --with-nvptx[=CLANG|no].
# Sets DEVICE_COMPILE, which makes of a .cu file what a driver loads: machine code for
# Hopper and newer and PTX for the rest by nvcc, PTX alone by clang, for which CUDA need
# not be there. Defines WEFT_DEVICE_CODE, a name for messages.
AC_DEFUN([WEFT_KERNELS], [dnl
AC_ARG_WITH([nvcc],
  [AS_HELP_STRING([--with-nvcc@<:@=PATH|no@:>@], [kernels for GPUs by this nvcc; default: if it is there])],
  [], [with_nvcc=auto])
AC_ARG_WITH([nvptx],
  [AS_HELP_STRING([--with-nvptx@<:@=CLANG|no@:>@], [where there is no nvcc, by this clang, as PTX; default: if it can])],
  [], [with_nvptx=auto])
DEVICE_COMPILE=
weft_nvcc=
AS_CASE(["$with_nvcc"],
  [no], [],
  [auto|yes], [AC_PATH_PROG([weft_nvcc], [nvcc], [], [$PATH$PATH_SEPARATOR/usr/local/cuda/bin])],
  [/*], [weft_nvcc=$with_nvcc],
  [AC_MSG_ERROR([--with-nvcc=$with_nvcc: want "yes", "no" or the absolute path of nvcc])])
AS_IF([test -n "$weft_nvcc"],
  [weft_archs=
   weft_codes=" `echo \`"$weft_nvcc" --list-gpu-code 2>/dev/null\`` "
   for weft_code in 90 100 120; do
     AS_CASE([$weft_codes],
       [*" sm_$weft_code "*],
       [weft_archs="$weft_archs -gencode arch=compute_$weft_code,code=sm_$weft_code"])
   done
   weft_least=
   for weft_code in 70 75 80; do
     AS_IF([test -z "$weft_least"],
       [AS_CASE([$weft_codes], [*" sm_$weft_code "*], [weft_least=$weft_code])])
   done
   AC_MSG_CHECKING([whether $weft_nvcc makes kernels])
   echo 'extern "C" __global__ void k(int *p) { *p = 1; }' >conftest.cu
   AS_IF([test -n "$weft_archs" && test -n "$weft_least" && "$weft_nvcc" -fatbin -arch=sm_90 -o conftest.fatbin conftest.cu >&AS_MESSAGE_LOG_FD 2>&1],
     [AC_MSG_RESULT([yes])
      DEVICE_COMPILE="$weft_nvcc -fatbin -Xfatbin -compress-all $weft_archs -gencode arch=compute_$weft_least,code=compute_$weft_least"
      weft_device="by nvcc: machine code for Hopper and newer, PTX for the rest"],
     [AC_MSG_RESULT([no])])
   rm -f conftest.cu conftest.fatbin])
AS_IF([test -z "$DEVICE_COMPILE" && test "x$with_nvcc" != xno && test "x$with_nvcc" != xauto],
  [AC_MSG_ERROR([--with-nvcc=$with_nvcc was asked for, but there is no nvcc of CUDA 12 or newer that makes machine code for compute capability 9.0 (config.log has its words). Name it with --with-nvcc=PATH, or leave the option out.])])
AS_CASE(["$with_nvptx"],
  [no], [weft_clangs=],
  [auto|yes], [weft_clangs="clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14"],
  [weft_clangs=$with_nvptx])
weft_ptx_flags="-x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib -Wno-unknown-cuda-version -O3 -S"
for weft_try in $weft_clangs; do
  AS_IF([test -z "$DEVICE_COMPILE"],
    [AC_MSG_CHECKING([whether $weft_try makes PTX])
     echo 'extern "C" __attribute__((global)) void k(int *p) { *p = 1; }' >conftest.cu
     AS_IF([$weft_try $weft_ptx_flags -o conftest.ptx conftest.cu >&AS_MESSAGE_LOG_FD 2>&1 && grep -q '\.entry k' conftest.ptx],
       [AC_MSG_RESULT([yes])
        DEVICE_COMPILE="$weft_try $weft_ptx_flags"
        weft_device="by $weft_try: PTX, which the driver translates when it is loaded"],
       [AC_MSG_RESULT([no])])
     rm -f conftest.cu conftest.ptx])
done
AS_IF([test -z "$DEVICE_COMPILE" && test "x$with_nvptx" != xno && test "x$with_nvptx" != xauto],
  [AC_MSG_ERROR([--with-nvptx=$with_nvptx was asked for, but no clang makes PTX (config.log has its words). Name one with --with-nvptx=CLANG, or leave the option out.])])
AS_IF([test -n "$DEVICE_COMPILE"],
  [AC_DEFINE_UNQUOTED([WEFT_DEVICE_CODE], ["kernels $weft_device"], [Kernels for GPUs are built in: how they were made.])
   WEFT_ROW([kernels], [found], [for GPUs $weft_device])],
  [WEFT_ROW([kernels], [none], [no reductions on GPUs: neither nvcc nor a clang that makes PTX])])
AC_SUBST([DEVICE_COMPILE])
AM_CONDITIONAL([HAVE_DEVICE_CODE], [test -n "$DEVICE_COMPILE"])])

# WEFT_PROVIDER_DIR: --with-providerdir. Sets providerdir, where the provider is installed;
# the table says whether libfabric looks there by itself. The folder that it looks in was
# compiled into it: lib/libfabric under the prefix that its .pc file names.
AC_DEFUN([WEFT_PROVIDER_DIR], [dnl
AC_ARG_WITH([providerdir],
  [AS_HELP_STRING([--with-providerdir=DIR], [where libweft-fi.so goes; "system": where libfabric looks by itself; default: LIBDIR/libfabric])],
  [], [with_providerdir='${libdir}/libfabric'])
weft_looks=`PKG_CONFIG_PATH="${weft_libfabric_dir:+$weft_libfabric_dir:}$PKG_CONFIG_PATH" $PKG_CONFIG --variable=libdir libfabric 2>/dev/null`
AS_IF([test -n "$weft_looks"], [weft_looks=$weft_looks/libfabric])
AS_CASE(["$with_providerdir"],
  [system],
  [AS_IF([test -z "$weft_looks"],
     [AC_MSG_ERROR([--with-providerdir=system: libfabric.pc does not say where libfabric is (it has no variable libdir). Give the folder itself.])])
   providerdir=$weft_looks],
  [/*|'${libdir}'/*], [providerdir=$with_providerdir],
  [AC_MSG_ERROR([--with-providerdir=$with_providerdir: want an absolute folder, or "system" for the one where libfabric looks by itself])])
AC_SUBST([providerdir])
# The folder with the variables of the makefile replaced, as far as this needs them.
weft_expanded=`test "x$prefix" != xNONE || prefix=$ac_default_prefix
  test "x$exec_prefix" != xNONE || exec_prefix=$prefix
  eval "weft_e=$providerdir"; eval "weft_e=$weft_e"; eval "echo $weft_e"`
AC_DEFINE_UNQUOTED([WEFT_PROVIDERDIR], ["$weft_expanded"], [Where the provider is installed.])
AC_DEFINE_UNQUOTED([WEFT_FABRICDIR], ["$weft_looks"], [Where libfabric looks for providers by itself; empty: not known.])
weft_bin=`test "x$prefix" != xNONE || prefix=$ac_default_prefix
  test "x$exec_prefix" != xNONE || exec_prefix=$prefix
  eval "weft_e=$bindir"; eval "echo $weft_e"`
AC_DEFINE_UNQUOTED([WEFT_BINDIR], ["$weft_bin"], [Where the command is installed.])
weft_lib=`test "x$prefix" != xNONE || prefix=$ac_default_prefix
  test "x$exec_prefix" != xNONE || exec_prefix=$prefix
  eval "weft_e=$libdir"; eval "weft_e=$weft_e"; eval "echo $weft_e"`
AC_DEFINE_UNQUOTED([WEFT_LIBDIR], ["$weft_lib"], [Where libraries are installed.])
AS_IF([test "x$weft_expanded" = "x$weft_looks"],
  [WEFT_ROW([provider], [found], [libfabric looks in $weft_expanded by itself])],
  [WEFT_ROW([provider], [by path], [goes to $weft_expanded, where libfabric does not look by itself:])
   WEFT_ROW([], [], [set FI_PROVIDER_PATH to it, or configure --with-providerdir=system])])
])

# WEFT_CHECK_BUILD_FLAGS(flags, option): a program can be built with flags, or error.
AC_DEFUN([WEFT_CHECK_BUILD_FLAGS], [dnl
AC_MSG_CHECKING([whether $CC builds programs with $1])
weft_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS $1"
AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
  [AC_MSG_RESULT([yes])],
  [AC_MSG_RESULT([no])
   AC_MSG_ERROR([$2 was asked for, but $CC builds no program with $1 (config.log has its words). Install the compiler's run-time libraries or choose another CC.])])
CFLAGS=$weft_save_CFLAGS])

# WEFT_ARG_SWITCH(name, help): --enable-NAME, yes or no and nothing else.
AC_DEFUN([WEFT_ARG_SWITCH], [dnl
AC_ARG_ENABLE([$1], [AS_HELP_STRING([--enable-$1], [$2])], [], [enable_$1=no])
AS_CASE(["$enable_$1"], [yes|no], [],
  [AC_MSG_ERROR([--enable-$1=$enable_$1: want "yes" or "no"])])])

# WEFT_BUILD_KINDS: --enable-werror, -debug, -sanitizers, -fuzzing. Sets WEFT_CFLAGS
# (the user's CFLAGS stay untouched), WEFT_ZDEFS and FUZZ_LDFLAGS.
AC_DEFUN([WEFT_BUILD_KINDS], [dnl
WEFT_ARG_SWITCH([werror], [turn warnings into errors])
WEFT_ARG_SWITCH([debug], [asserts that cost time; -O0 -g3 unless CFLAGS is given])
WEFT_ARG_SWITCH([fuzzing], [build the fuzz targets (CC must be clang)])
AC_ARG_ENABLE([sanitizers],
  [AS_HELP_STRING([--enable-sanitizers=LIST], [address,undefined (either or both) or thread])],
  [], [enable_sanitizers=no])

WEFT_CFLAGS="-std=gnu11 -Wall -Wextra -fvisibility=hidden${weft_fi_CFLAGS:+ $weft_fi_CFLAGS}"
AS_IF([test "x$enable_werror" = xyes],
  [WEFT_CFLAGS="$WEFT_CFLAGS -Werror"
   WEFT_ROW([werror], [on], [a warning stops the build])],
  [WEFT_ROW([werror], [off], [warnings are only shown])])

# A library that needs symbols from nowhere is an error at link time. Not with clang's
# sanitizers: their run-time is linked into programs only.
WEFT_ZDEFS="-Wl,-z,defs"
AC_MSG_CHECKING([whether $CC is clang])
AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#ifndef __clang__
#error not clang
#endif
]])], [weft_clang=yes], [weft_clang=no])
AC_MSG_RESULT([$weft_clang])
# Whether a loop becomes vectors depends on CFLAGS, so it must not stop a build; and
# with sanitizers hardly any does, which is not worth a line each.
AS_IF([test "x$weft_clang" = xyes],
  [AS_IF([test "x$enable_sanitizers$enable_fuzzing" = xnono],
     [WEFT_CFLAGS="$WEFT_CFLAGS -Wno-error=pass-failed"],
     [WEFT_CFLAGS="$WEFT_CFLAGS -Wno-pass-failed"])])

FUZZ_LDFLAGS=
AS_IF([test "x$enable_fuzzing" = xyes],
  [AS_IF([test "x$weft_clang" = xno],
     [AC_MSG_ERROR([--enable-fuzzing needs clang, since the fuzzing engine is part of it, but CC is "$CC". Configure with CC=clang.])])
   AS_IF([test "x$enable_sanitizers" = xno], [enable_sanitizers=address,undefined])
   WEFT_CHECK_BUILD_FLAGS([-fsanitize=address,fuzzer-no-link], [--enable-fuzzing])
   WEFT_CFLAGS="$WEFT_CFLAGS -fsanitize=fuzzer-no-link"
   FUZZ_LDFLAGS="-fsanitize=fuzzer"
   WEFT_ROW([fuzzing], [on], [make fuzz runs every fuzz target for FUZZ_SECONDS])],
  [WEFT_ROW([fuzzing], [off], [no fuzz targets are built (--enable-fuzzing)])])
AM_CONDITIONAL([FUZZING], [test "x$enable_fuzzing" = xyes])

AS_IF([test "x$enable_sanitizers" = xyes], [enable_sanitizers=address,undefined])
AS_IF([test "x$enable_sanitizers" != xno],
  [weft_list=
   weft_rest="$enable_sanitizers,"
   while test -n "$weft_rest"; do
     weft_one=${weft_rest%%,*}
     weft_rest=${weft_rest#*,}
     AS_CASE([$weft_one],
       [address|undefined|thread], [weft_list="$weft_list $weft_one"],
       [AC_MSG_ERROR([--enable-sanitizers=$enable_sanitizers: there is no sanitizer "$weft_one". There are address, undefined (together or alone) and thread (alone).])])
   done
   AS_CASE(["$weft_list "],
     [" thread "], [],
     [*" thread "*],
     [AC_MSG_ERROR([--enable-sanitizers=$enable_sanitizers: thread goes with no other sanitizer])])
   WEFT_CHECK_BUILD_FLAGS([-fsanitize=$enable_sanitizers], [--enable-sanitizers])
   WEFT_CFLAGS="$WEFT_CFLAGS -fsanitize=$enable_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer"
   AS_IF([test "x$weft_clang" = xyes], [WEFT_ZDEFS=],
     dnl Fences order nothing in gcc's ThreadSanitizer, of which -Wtsan warns. Weft has
     dnl them between atomics only, which are never reported as races.
     [test "x$enable_sanitizers" = xthread], [WEFT_CFLAGS="$WEFT_CFLAGS -Wno-tsan"])
   WEFT_ROW([sanitizers], [on], [$enable_sanitizers; slow, for tests only])],
  [WEFT_ROW([sanitizers], [off], [--enable-sanitizers=address,undefined or thread])])

AS_IF([test "x$enable_debug" = xyes],
  [AC_DEFINE([WEFT_DEBUG], [1], [Define to 1 for asserts that cost time.])
   AS_IF([test -z "$weft_user_CFLAGS"], [CFLAGS="-O0 -g3"])
   WEFT_ROW([debug], [on], [asserts that cost time; CFLAGS are $CFLAGS])],
  [WEFT_ROW([debug], [off], [CFLAGS are $CFLAGS])])

AM_CONDITIONAL([SANITIZE_THREAD], [test "x$enable_sanitizers" = xthread])
AC_SUBST([WEFT_CFLAGS])
AC_SUBST([WEFT_ZDEFS])
AC_SUBST([FUZZ_LDFLAGS])
])

# WEFT_TABLE: prints all rows.
AC_DEFUN([WEFT_TABLE], [dnl
echo
echo "weft $PACKAGE_VERSION, to be installed under $prefix"
echo
printf '%s' "feature|state|what that means
$weft_rows" | while IFS='|' read -r weft_f weft_s weft_m; do
  printf '  %-12s %-11s %s\n' "$weft_f" "$weft_s" "$weft_m"
done
echo])
