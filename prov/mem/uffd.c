/* SPDX-License-Identifier: BSD-2-Clause */
/* News of mappings by userfaultfd; see uffd.h. */
#include "config.h"

#include "prov/mem/uffd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

/* Newer than some headers: for those who may not see faults of the kernel (5.11); any
 * kind of mapping may be watched for writes (6.7). */
#define USER_MODE_ONLY	 1
#define FEATURE_WP_SHMEM (UINT64_C(1) << 12)
#define FEATURE_WP_ASYNC (UINT64_C(1) << 15)
#define FEATURES_NEEDED \
	(UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE)

static int descriptor(void)
{
	return (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);
}

/* Shakes hands; false: refused. *features: wanted, then what there is. */
static bool handshake(int fd, uint64_t *features)
{
	struct uffdio_api api = {.api = UFFD_API, .features = *features};

	if (ioctl(fd, UFFDIO_API, &api) != 0)
		return false;
	*features = api.features;
	return true;
}

/* A descriptor can be asked once only, so that another one is. */
static uint64_t features_offered(void)
{
	uint64_t features = 0;
	int fd = descriptor();

	if (fd < 0)
		return 0;
	if (!handshake(fd, &features))
		features = 0;
	close(fd);
	return features;
}

static bool can_watch(int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	struct mem_range r = {(uintptr_t)at, (uintptr_t)at + page};
	bool can;

	if (at == MAP_FAILED)
		return false;
	can = mem_uffd_watch(fd, r);
	if (can)
		mem_uffd_unwatch(fd, r);
	munmap(at, page);
	return can;
}

int mem_uffd_open(int *fd_out, const char **why)
{
	uint64_t offered, want;
	int fd = descriptor();

	if (fd < 0) {
		*why = errno == EPERM	 ? "userfaultfd is not allowed"
		       : errno == ENOSYS ? "the kernel has no userfaultfd"
		       : errno == EINVAL ? "userfaultfd knows no user mode (before 5.11)"
					 : "userfaultfd gives no descriptor";
		return errno == EMFILE || errno == ENFILE ? -FI_EMFILE : -FI_ENOSYS;
	}
	offered = features_offered();
	want = FEATURES_NEEDED | (offered & (FEATURE_WP_SHMEM | FEATURE_WP_ASYNC));
	if ((offered & FEATURES_NEEDED) != FEATURES_NEEDED || !handshake(fd, &want)) {
		*why = "userfaultfd does not tell of unmapping, moving and removing";
		close(fd);
		return -FI_ENOSYS;
	}
	if (!can_watch(fd)) {
		*why = "userfaultfd can't watch without holding accesses up";
		close(fd);
		return -FI_ENOSYS;
	}
	*fd_out = fd;
	return 0;
}

bool mem_uffd_watch(int fd, struct mem_range r)
{
	struct uffdio_register reg = {
		.range = {.start = r.start, .len = r.end - r.start},
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(fd, UFFDIO_REGISTER, &reg) == 0;
}

void mem_uffd_unwatch(int fd, struct mem_range r)
{
	struct uffdio_range range = {.start = r.start, .len = r.end - r.start};

	/* Part of it may be gone, and the kernel says so. */
	(void)ioctl(fd, UFFDIO_UNREGISTER, &range);
}

bool mem_uffd_is_changing(int fd)
{
	/* An order to put nothing nowhere: -EAGAIN comes before it is looked at. */
	struct uffdio_zeropage nothing = {.range = {.start = 1, .len = 0}};

	return ioctl(fd, UFFDIO_ZEROPAGE, &nothing) != 0 && errno == EAGAIN;
}

int mem_uffd_read(int fd, struct mem_range *gone, int most)
{
	int count = 0;

	while (count + 2 <= most) {
		struct uffd_msg msg;

		if (read(fd, &msg, sizeof(msg)) != (ssize_t)sizeof(msg))
			break;
		switch (msg.event) {
		case UFFD_EVENT_UNMAP:
		case UFFD_EVENT_REMOVE:
			gone[count].start = (uintptr_t)msg.arg.remove.start;
			gone[count++].end = (uintptr_t)msg.arg.remove.end;
			break;
		case UFFD_EVENT_REMAP:
			gone[count].start = (uintptr_t)msg.arg.remap.from;
			gone[count++].end =
				(uintptr_t)(msg.arg.remap.from + msg.arg.remap.len);
			/* What was there was unmapped for it. */
			gone[count].start = (uintptr_t)msg.arg.remap.to;
			gone[count++].end =
				(uintptr_t)(msg.arg.remap.to + msg.arg.remap.len);
			break;
		default:
			break;
		}
	}
	return count;
}
