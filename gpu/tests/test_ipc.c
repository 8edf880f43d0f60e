/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of another process, by both kinds of export: what one writes the other reads,
 * two imports share a mapping, the exporter may die, and bytes that are no export are
 * refused. The exporter is a child that was forked before either loaded a driver.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/gpu.h"
#include "gpu/tests/app.h"
#include "util/fd.h"
#include "util/tap.h"
#include "util/tap_fork.h"

#define LEN   (2u << 20)
#define LIMIT (60ull * 1000000000)

/* What goes over the socket, with a descriptor where there is one. */
static int send_export(int sock, const struct gpu_ipc *ipc, int fd)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {(void *)(uintptr_t)ipc, sizeof(*ipc)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (fd >= 0) {
		memset(control, 0, sizeof(control));
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(sock, &msg, 0) == (ssize_t)sizeof(*ipc) ? 0 : -1;
}

static int receive_export(int sock, struct gpu_ipc *ipc, int *fd)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {ipc, sizeof(*ipc)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c;

	*fd = -1;
	if (recvmsg(sock, &msg, MSG_WAITALL | MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(*ipc))
		return -1;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return 0;
}

static int fill(struct gpu *gpu, void *dev, uint8_t byte)
{
	struct gpu_queue *q = NULL;
	int ret = gpu_queue_open(gpu, 0, &q);

	if (ret == 0)
		ret = gpu_fill(q, dev, byte, LEN);
	if (ret == 0)
		ret = gpu_queue_sync(q, LIMIT);
	if (q)
		gpu_queue_close(q);
	return ret;
}

/* Whether all of it is that byte. */
static bool filled(struct gpu *gpu, const void *dev, uint8_t byte)
{
	struct gpu_queue *q = NULL;
	uint8_t *pin = NULL;
	bool good;

	good = gpu_queue_open(gpu, 0, &q) == 0 &&
	       gpu_pinned_alloc(gpu, LEN, (void **)&pin) == 0 &&
	       gpu_copy(q, pin, dev, LEN) == 0 && gpu_queue_sync(q, LIMIT) == 0 &&
	       pin[0] == byte && memcmp(pin, pin + 1, LEN - 1) == 0;
	if (!good)
		tap_diag("%s", gpu_error(gpu));
	if (pin)
		gpu_pinned_free(gpu, pin);
	if (q)
		gpu_queue_close(q);
	return good;
}

/* The child: exports one piece of each kind, says so, and shows what was written to them
 * when it is asked; then waits to be killed. */
static int exporter(int sock)
{
	struct app *app = app_open();
	struct gpu *gpu = app ? app_gpu(app) : NULL;
	struct gpu_ipc ipc;
	void *mem[2];
	char go;
	int fd;

	if (!gpu)
		return 1;
	app_device(app, 0);
	mem[0] = (void *)(uintptr_t)app_alloc(app, LEN);
	mem[1] = (void *)(uintptr_t)app_map(app, 0, LEN, 1, true);
	for (int i = 0; i < 2; i++) {
		if (fill(gpu, mem[i], (uint8_t)(10 + i)) ||
		    gpu_ipc_export(gpu, (char *)mem[i] + 100, &ipc, &fd) ||
		    send_export(sock, &ipc, fd)) {
			tap_diag("export: %s", gpu_error(gpu));
			return 1;
		}
		if (fd >= 0)
			close(fd);
	}
	if (fd_read_all(sock, &go, 1))
		return 1;
	go = filled(gpu, mem[0], 20) && filled(gpu, mem[1], 21);
	if (fd_write_all(sock, &go, 1))
		return 1;
	for (;;)
		pause();
}

static void refusals(struct gpu *gpu, const struct gpu_ipc *ipc, int fd)
{
	struct gpu_ipc bad = *ipc;
	void *base = NULL;

	bad.kind = 3;
	tap_is_int(gpu_ipc_import(gpu, 0, &bad, fd, &base), -EINVAL,
		   "no such kind: refused");
	bad = *ipc;
	bad.len = UINT64_MAX;
	tap_is_int(gpu_ipc_import(gpu, 0, &bad, fd, &base), -EINVAL,
		   "no such length: refused");
	bad = *ipc;
	bad.uuid[3] ^= 1;
	tap_is_int(gpu_ipc_import(gpu, 0, &bad, fd, &base), -ENODEV,
		   "no such GPU: refused");
	tap_ok(strstr(gpu_error(gpu), "CUDA_VISIBLE_DEVICES"),
	       "with what to do about it");
	tap_is_int(gpu_ipc_import(gpu, 0, ipc, fd >= 0 ? -1 : 0, &base), -EINVAL,
		   "a descriptor too few, or too many: refused");
	bad = *ipc;
	memset(bad.handle, 0x5a, sizeof(bad.handle));
	bad.base += 4096;
	if (ipc->kind == GPU_IPC_HANDLE)
		tap_ok(gpu_ipc_import(gpu, 0, &bad, fd, &base) < 0, "no handle: refused");
	else
		tap_ok(gpu_ipc_import(gpu, 0, &bad, 0, &base) < 0,
		       "a descriptor that is none: refused");
	tap_ok(base == NULL, "and nothing was written");
	tap_is_int(gpu_ipc_release(gpu, &bad), -EINVAL, "nobody imported that: refused");
}

/* An export of this process is used as it is. */
static void own(struct gpu *gpu)
{
	void *mem = NULL, *base = NULL;
	struct gpu_ipc ipc;
	int fd = -1;

	tap_is_int(gpu_alloc(gpu, 0, LEN, &mem), 0, "memory of ours");
	tap_is_int(gpu_ipc_export(gpu, mem, &ipc, &fd), 0, "exported");
	tap_ok(gpu_ipc_import(gpu, 0, &ipc, fd, &base) == 0 && base == mem,
	       "is imported where it is");
	tap_is_int(gpu_ipc_release(gpu, base), 0, "and released");
	if (fd >= 0)
		close(fd);
	gpu_free(gpu, mem);
	tap_is_int(gpu_ipc_export(gpu, &fd, &ipc, &fd), -EINVAL,
		   "the stack is not exported");
}

static int importer(int sock, pid_t child)
{
	static const uint32_t kinds[2] = {GPU_IPC_HANDLE, GPU_IPC_FD};
	struct app *app = app_open();
	struct gpu *gpu = app ? app_gpu(app) : NULL;
	struct gpu_ipc ipc[2];
	void *base[2] = {NULL, NULL}, *again = NULL;
	char go = 0;
	int fd[2];

	if (!gpu)
		return 1;
	own(gpu);
	for (int i = 0; i < 2; i++) {
		tap_is_int(receive_export(sock, &ipc[i], &fd[i]), 0, "an export arrives");
		tap_ok(ipc[i].kind == kinds[i] && ipc[i].pid == (uint32_t)child &&
			       ipc[i].len >= LEN,
		       "of the kind that fits the memory");
		refusals(gpu, &ipc[i], fd[i]);
		if (!tap_ok(gpu_ipc_import(gpu, 0, &ipc[i], fd[i], &base[i]) == 0,
			    "import"))
			tap_diag("%s", gpu_error(gpu));
		tap_ok(gpu_ipc_import(gpu, 0, &ipc[i], fd[i], &again) == 0 &&
			       again == base[i],
		       "a second import has the same mapping");
		tap_is_int(gpu_ipc_release(gpu, again), 0, "and is released alone");
		if (fd[i] >= 0)
			close(fd[i]);
		tap_ok(filled(gpu, base[i], (uint8_t)(10 + i)),
		       "what the other wrote is read");
		tap_is_int(fill(gpu, base[i], (uint8_t)(20 + i)), 0, "and overwritten");
	}
	tap_ok(fd_write_all(sock, &go, 1) == 0 && fd_read_all(sock, &go, 1) == 0 && go,
	       "which the other sees");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (int i = 0; i < 2; i++) {
		tap_ok(filled(gpu, base[i], (uint8_t)(20 + i)),
		       "the exporter is dead, its memory is there");
		tap_is_int(gpu_ipc_release(gpu, base[i]), 0, "until it is released");
		tap_is_int(gpu_ipc_release(gpu, base[i]), -EINVAL, "which is done once");
	}
	gpu_close(gpu);
	return tap_done();
}

int main(void)
{
	int pair[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return 1;
	child = tap_fork();
	if (child == 0) {
		close(pair[0]);
		_exit(exporter(pair[1]));
	}
	close(pair[1]);
	return child < 0 ? 1 : importer(pair[0], child);
}
