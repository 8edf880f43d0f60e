/* SPDX-License-Identifier: BSD-2-Clause */
/* See boot_table.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coll/boot/boot_table.h"
#include "coll/boot/boot_wire.h"
#include "util/fd.h"

#define KERNEL_FILE "/proc/sys/kernel/random/boot_id"
#define NUMBERS_OF  "/proc/self/ns/pid" /* in which process numbers mean the same */

enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

static uint64_t hash_add(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *byte = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ byte[i]) * UINT64_C(1099511628211);
	return hash;
}

uint64_t boot_table_host(int32_t rank)
{
	const char *nodes = getenv("WEFT_NODES"); /* refused elsewhere if it is wrong */
	const long fake = nodes ? strtol(nodes, NULL, 10) : 0;
	uint64_t hash = UINT64_C(14695981039346656037), words[4] = {0};
	const int fd = open(KERNEL_FILE, O_RDONLY | O_CLOEXEC);
	char kernel[64] = "";
	struct stat numbers;
	ssize_t got = -1;

	if (fd >= 0) {
		got = read(fd, kernel, sizeof(kernel));
		close(fd);
	}
	if (got <= 0 || stat(NUMBERS_OF, &numbers) != 0)
		return 0;
	words[0] = (uint64_t)numbers.st_dev;
	words[1] = (uint64_t)numbers.st_ino;
	words[2] = (uint64_t)geteuid();
	words[3] = fake > 0 ? (uint64_t)(rank / fake) : 0;
	hash = hash_add(hash, kernel, (size_t)got);
	hash = hash_add(hash, words, sizeof(words));
	return hash ? hash : 1;
}

uint64_t boot_table_place(int fd)
{
	return (uint64_t)getpid() << 32 | (uint32_t)fd;
}

int boot_table_make(const uint8_t *job, const struct boot_gather *g, int32_t size,
		    const void *payload)
{
	const struct boot_msg msg = {
		.type = BOOT_RESULT, .size = size, .seq = g->seq, .len = g->len};
	const int fd = memfd_create("weft-boot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct boot_hdr hdr;

	if (fd < 0)
		return -1;
	boot_wire_put(&hdr, &msg, job);
	if (fd_write_all(fd, &hdr, sizeof(hdr)) == 0 &&
	    fd_write_all(fd, payload, g->len * (uint64_t)size) == 0 &&
	    fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool table_good(int fd, const uint8_t *job, const struct boot_gather *g,
		       int32_t size)
{
	const uint64_t len = sizeof(struct boot_hdr) + g->len * (uint64_t)size;
	const int seals = fcntl(fd, F_GET_SEALS); /* fails for any other kind of file */
	struct boot_hdr hdr;
	struct boot_msg m;
	struct stat st;

	return seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &st) == 0 &&
	       (uint64_t)st.st_size == len && lseek(fd, 0, SEEK_SET) == 0 &&
	       fd_read_all(fd, &hdr, sizeof(hdr)) == 0 &&
	       boot_wire_check(&hdr, sizeof(hdr), job, &m) == BOOT_WIRE_GOOD &&
	       m.type == BOOT_RESULT && m.rank == 0 && m.size == size &&
	       m.seq == g->seq && m.len == g->len;
}

static bool table_map(int fd, struct boot_view *view, size_t len)
{
	void *at = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return false;
	view->memory = at;
	view->mapped = len;
	view->at = (const char *)at + sizeof(struct boot_hdr);
	return true;
}

bool boot_table_take(uint64_t place, const uint8_t *job, const struct boot_gather *g,
		     int32_t size)
{
	const uint64_t len = g->len * (uint64_t)size;
	char name[64];
	bool taken;
	int fd;

	snprintf(name, sizeof(name), "/proc/%u/fd/%u", (unsigned)(place >> 32),
		 (unsigned)(place & UINT32_MAX));
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	taken = table_good(fd, job, g, size);
	if (taken && g->view)
		taken = table_map(fd, g->view, sizeof(struct boot_hdr) + len);
	else if (taken)
		taken = fd_read_all(fd, g->out, len) == 0;
	close(fd);
	return taken;
}
