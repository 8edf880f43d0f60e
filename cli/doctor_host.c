/* SPDX-License-Identifier: BSD-2-Clause */
/* weft doctor: limits of this process, and settings of the kernel. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "topo/host/sys_file.h"

#define MIB (UINT64_C(1) << 20)

enum {
	FILES_FEW = 4096,	/* descriptors: some for each peer */
	SOCKET_BYTES = 4 << 20, /* about 40 Gb/s at a round trip of 1 ms */
	LOCK_FEW_MIB = 1024,	/* what RDMA registers is locked */
};

/* The soft limit of a row of /proc/self/limits; UINT64_MAX: unlimited. */
static bool limit_of(const char *root, const char *row, uint64_t *value)
{
	char text[SYS_TEXT], word[32];
	const char *at;

	if (!sys_text(text, "%s/proc/self/limits", root))
		return false;
	at = strstr(text, row);
	if (!at || sscanf(at + strlen(row), " %31s", word) != 1)
		return false;
	if (strcmp(word, "unlimited") == 0)
		*value = UINT64_MAX;
	else if (sscanf(word, "%" SCNu64, value) != 1)
		return false;
	return true;
}

static void locked_memory(struct findings *f, const char *root)
{
	const char *name = "locked memory";
	const char *cure =
		"ulimit -l unlimited before the program starts; for good \"* - memlock "
		"unlimited\" in /etc/security/limits.conf; in a container --ulimit "
		"memlock=-1; under systemd LimitMEMLOCK=infinity";
	uint64_t bytes;

	if (!limit_of(root, "Max locked memory", &bytes))
		findings_add(f, LEVEL_WARN, name, NULL, "the limit cannot be read");
	else if (bytes == UINT64_MAX)
		findings_add(f, LEVEL_PASS, name, NULL, "unlimited");
	else if (!doctor_has_rdma(root))
		findings_add(f, LEVEL_PASS, name, NULL,
			     "%" PRIu64 " KiB; no RDMA device is here that needs more",
			     bytes / 1024);
	else
		findings_add(f, bytes < 64 * MIB ? LEVEL_FAIL : LEVEL_WARN, name, cure,
			     "%" PRIu64
			     " KiB may be locked, and RDMA devices lock all memory "
			     "that they are given",
			     bytes / 1024);
}

static void open_files(struct findings *f, const char *root)
{
	uint64_t n;

	if (!limit_of(root, "Max open files", &n))
		return;
	if (n >= FILES_FEW)
		findings_add(f, LEVEL_PASS, "open files", NULL, "%" PRIu64 " at once",
			     n == UINT64_MAX ? 0 : n);
	else
		findings_add(f, LEVEL_WARN, "open files", "ulimit -n 65536",
			     "%" PRIu64 " at once; each peer takes some", n);
}

/* ---- cross-memory attach ----------------------------------------------------------- */

/* A child that waits until it is killed, or its parent is gone. */
static pid_t target_start(void)
{
	const pid_t parent = getpid();
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		pause();
	_exit(0);
}

/* Whether one child may read the memory of another, as ranks do: 0, or an errno; -1: it
 * cannot be tried. */
static int attach_try(void)
{
	static volatile char here = 'w';
	char got = 0;
	struct iovec to = {.iov_base = &got, .iov_len = 1};
	struct iovec from = {.iov_base = (void *)&here, .iov_len = 1};
	pid_t target = target_start(), reader;
	int status = -1, result = -1;

	if (target < 0)
		return -1;
	reader = fork();
	if (reader == 0)
		_exit(process_vm_readv(target, &to, 1, &from, 1, 0) == 1 ? 0 : errno);
	if (reader > 0 && waitpid(reader, &status, 0) == reader && WIFEXITED(status))
		result = WEXITSTATUS(status);
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	return result;
}

static void attach(struct findings *f, const char *root)
{
	const char *name = "memory attach";
	const char *cure =
		"sysctl -w kernel.yama.ptrace_scope=0; in a container --cap-add "
		"SYS_PTRACE, or a seccomp profile that allows process_vm_readv";
	const char *wish = getenv("FI_WEFT_CMA");
	const enum level level = wish && strcmp(wish, "1") == 0 ? LEVEL_FAIL : LEVEL_WARN;
	int64_t scope = 0;
	bool known = sys_int(&scope, "%s/proc/sys/kernel/yama/ptrace_scope", root);
	int err;

	if (root[0]) {
		if (scope <= 0)
			findings_add(f, LEVEL_PASS, name, NULL,
				     "nothing in the kernel's settings is against it");
		else
			findings_add(f, level, name, cure,
				     "kernel.yama.ptrace_scope is %" PRId64
				     ": ranks cannot read each other's memory, and large "
				     "messages are copied twice",
				     scope);
		return;
	}
	err = attach_try();
	if (err == 0)
		findings_add(f, LEVEL_PASS, name, NULL,
			     "a process may read the memory of its sibling");
	else if (err < 0)
		findings_add(f, LEVEL_WARN, name, NULL,
			     "cannot be tried: no process can be started");
	else
		findings_add(f, level, name, cure,
			     "refused between siblings (%s; kernel.yama.ptrace_scope "
			     "%s%" PRId64 "): large messages are copied twice",
			     strerror(err), known ? "is " : "is not known: ", scope);
}

/* ---- the kernel -------------------------------------------------------------------- */

static void huge_pages(struct findings *f, const char *root)
{
	const char *name = "huge pages";
	char text[SYS_TEXT];
	const char *open, *close;

	if (!sys_text(text, "%s/sys/kernel/mm/transparent_hugepage/enabled", root))
		return;
	open = strchr(text, '[');
	close = open ? strchr(open, ']') : NULL;
	if (!close)
		return;
	if (strncmp(open, "[never]", 7) == 0)
		findings_add(f, LEVEL_WARN, name,
			     "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
			     "transparent huge pages are off: large buffers cost more to "
			     "register and to read");
	else
		findings_add(f, LEVEL_PASS, name, NULL, "transparent: %.*s",
			     (int)(close - open - 1), open + 1);
}

static void socket_buffers(struct findings *f, const char *root)
{
	static const char *const which[] = {"rmem_max", "wmem_max"};
	char cure[128];
	int64_t bytes;

	for (int i = 0; i < 2; i++) {
		if (!sys_int(&bytes, "%s/proc/sys/net/core/%s", root, which[i]))
			continue;
		snprintf(cure, sizeof(cure), "sysctl -w net.core.%s=%d", which[i],
			 4 * SOCKET_BYTES);
		if (bytes >= SOCKET_BYTES)
			findings_add(f, LEVEL_PASS, "socket buffers", NULL,
				     "net.core.%s is %" PRId64, which[i], bytes);
		else
			findings_add(f, LEVEL_WARN, "socket buffers", cure,
				     "net.core.%s is %" PRId64
				     ": too little for fast networks by sockets (tcp, "
				     "FI_WEFT_WIRE=uet)",
				     which[i], bytes);
	}
}

static void clock_source(struct findings *f, const char *root)
{
	char text[SYS_TEXT];

	if (!sys_text(
		    text,
		    "%s/sys/devices/system/clocksource/clocksource0/current_clocksource",
		    root))
		return;
	if (strcmp(text, "hpet") == 0 || strcmp(text, "acpi_pm") == 0)
		findings_add(f, LEVEL_WARN, "clock",
			     "find out in the kernel's log why it left tsc; "
			     "tsc=reliable on its command line where that is so",
			     "%s: each look at it is a system call", text);
	else
		findings_add(f, LEVEL_PASS, "clock", NULL, "%s", text);
}

static void cpu_speed(struct findings *f, const char *root)
{
	char text[SYS_TEXT];

	if (!sys_text(text, "%s/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
		      root))
		return;
	if (strcmp(text, "performance") == 0)
		findings_add(f, LEVEL_PASS, "CPU speed", NULL, "governor %s", text);
	else
		findings_add(f, LEVEL_WARN, "CPU speed",
			     "cpupower frequency-set -g performance",
			     "governor %s: cores that wait become slow", text);
}

/* What a container may use of the processors: ranks wait by spinning. */
static void cpu_quota(struct findings *f, const char *root)
{
	char text[SYS_TEXT];
	double quota, period;

	if (!sys_text(text, "%s/sys/fs/cgroup/cpu.max", root) ||
	    sscanf(text, "%lf %lf", &quota, &period) != 2 || period <= 0)
		return;
	findings_add(f, LEVEL_WARN, "CPU quota",
		     "no more ranks than that; or leave out --cpus of the container, and "
		     "give it CPUs of its own (--cpuset-cpus)",
		     "this group of processes is stopped when it has used %.2f CPUs",
		     quota / period);
}

static void numa_balancing(struct findings *f, const char *root)
{
	char nodes[SYS_TEXT];
	int64_t on;

	if (!sys_text(nodes, "%s/sys/devices/system/node/online", root) ||
	    strcmp(nodes, "0") == 0 ||
	    !sys_int(&on, "%s/proc/sys/kernel/numa_balancing", root))
		return;
	if (on == 0)
		findings_add(f, LEVEL_PASS, "NUMA balancing", NULL, "off");
	else
		findings_add(f, LEVEL_WARN, "NUMA balancing",
			     "sysctl -w kernel.numa_balancing=0",
			     "on: it takes pages away from programs to see who uses "
			     "them");
}

/* ---- all --------------------------------------------------------------------------- */

typedef void check_fn(struct findings *f, const char *root);

static check_fn *const check_table[] = {
	locked_memory, open_files, attach,    huge_pages,     socket_buffers,
	clock_source,  cpu_speed,  cpu_quota, numa_balancing, doctor_devices,
};

void doctor_host(struct findings *f, const char *root)
{
	for (size_t i = 0; i < sizeof(check_table) / sizeof(check_table[0]); i++)
		check_table[i](f, root);
}
