/* SPDX-License-Identifier: BSD-2-Clause */
/* Sealed anonymous memory: created for peers, or received from one and checked. */
#include "config.h"

#include "prov/mem/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define SEALS_SIZE (F_SEAL_SHRINK | F_SEAL_GROW)

static int memfd_error(int err)
{
	return err == EMFILE || err == ENFILE ? -FI_EMFILE : -FI_ENOMEM;
}

int mem_memfd_create(const char *name, size_t size, int *fd_out, void **map_out)
{
	int fd, ret;
	void *map;

	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return memfd_error(errno);
	if (ftruncate(fd, (off_t)size) < 0 || fcntl(fd, F_ADD_SEALS, SEALS_SIZE) < 0) {
		ret = memfd_error(errno);
		goto err_close;
	}
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		ret = -FI_ENOMEM;
		goto err_close;
	}
	*fd_out = fd;
	*map_out = map;
	return 0;

err_close:
	close(fd);
	return ret;
}

bool mem_memfd_seal_writes(int fd)
{
	return fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0;
}

int mem_memfd_map(int fd, size_t *size, bool write, void **map_out)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;
	void *map;

	if (seals < 0 || (seals & SEALS_SIZE) != SEALS_SIZE)
		return -FI_EINVAL;
	/* Huge page memory knows seals too, but an access may fail there. */
	if (fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		return -FI_EINVAL;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    (uint64_t)st.st_size > SIZE_MAX)
		return -FI_EINVAL;
	if (*size != 0 && (size_t)st.st_size != *size)
		return -FI_EINVAL;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | (write ? PROT_WRITE : 0),
		   MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return errno == ENOMEM ? -FI_ENOMEM : -FI_EINVAL;
	*size = (size_t)st.st_size;
	*map_out = map;
	return 0;
}
