/* SPDX-License-Identifier: BSD-2-Clause */
/* See lines_mem.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "coll/api/error.h"
#include "coll/exec/lines_mem.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

/* What must hold of the file of a peer: it cannot get shorter under our feet. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#define LINES_MAGIC UINT64_C(0x3130656e694c7457) /* "WtLine01" */

struct lines_file {
	uint64_t magic;
	uint8_t nonce[6];
	uint8_t zero[2];
	uint64_t nonce_at; /* where the nonce is in the memory of the owner */
	char pad[LINES_PAGE - 24];
	struct lines_area area[LINES_AREAS];
};

_Static_assert(sizeof(struct lines_file) ==
		       LINES_PAGE + LINES_AREAS * sizeof(struct lines_area),
	       "the first page is the head's");

enum weft_result lines_read(const char *text, enum lines_wish *wish)
{
	static const char *const names[] = {[LINES_AUTO] = "auto",
					    [LINES_OFF] = "off",
					    [LINES_ON] = "on",
					    [LINES_ONLY_SHORT] = "short"};

	*wish = LINES_AUTO;
	if (!text || !*text)
		return WEFT_SUCCESS;
	for (int i = 0; i < 4; i++) {
		if (!strcmp(text, names[i])) {
			*wish = (enum lines_wish)i;
			return WEFT_SUCCESS;
		}
	}
	return error_set(WEFT_ERR_ARG,
			 "WEFT_LINES is \"%.40s\": it must be auto, on, short or off",
			 text);
}

/* Once, and only where somebody asked for lines: everything works without. */
__attribute__((format(printf, 2, 3))) static void lines_say(struct lines_mem *mem,
							    const char *fmt, ...)
{
	char why[200];
	va_list ap;

	if (!mem->demands || mem->told)
		return;
	mem->told = true;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	fprintf(stderr,
		"weft: WEFT_LINES=on: %s; collectives within the host go by messages, "
		"or those that are not short do\n",
		why);
}

static bool file_make(struct lines_mem *mem)
{
	void *map;

	mem->fd = memfd_create("weft-lines", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (mem->fd < 0 || ftruncate(mem->fd, sizeof(struct lines_file)))
		return false;
	map = mmap(NULL, sizeof(struct lines_file), PROT_READ | PROT_WRITE, MAP_SHARED,
		   mem->fd, 0);
	if (map == MAP_FAILED)
		return false;
	mem->own = map;
	/* Nobody but us will write there; kernels before 5.1 cannot promise it. */
	fcntl(mem->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
	if (fcntl(mem->fd, F_ADD_SEALS, SEALS))
		return false;
	mem->own->magic = LINES_MAGIC;
	mem->own->nonce_at = (uintptr_t)mem->own->nonce;
	return getrandom(mem->own->nonce, sizeof(mem->own->nonce), 0) ==
	       (ssize_t)sizeof(mem->own->nonce);
}

void lines_mem_open(struct lines_mem *mem, enum lines_wish wish, struct lines_card *card)
{
	*mem = (struct lines_mem){.fd = -1,
				  .demands = wish == LINES_ON,
				  .only_short = wish == LINES_ONLY_SHORT};
	memset(card, 0, sizeof(*card));
	if (wish == LINES_OFF)
		return;
	if (!file_make(mem) || mem->fd > UINT16_MAX) {
		lines_say(mem, "a file in memory of %zu bytes: %s",
			  sizeof(struct lines_file), strerror(errno));
		lines_mem_close(mem);
		return;
	}
	card->pid = (uint32_t)getpid();
	card->fd = (uint16_t)mem->fd;
	memcpy(card->nonce, mem->own->nonce, sizeof(card->nonce));
}

static bool file_fits(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size == (off_t)sizeof(struct lines_file) &&
	       (fcntl(fd, F_GET_SEALS) & SEALS) == SEALS;
}

/* NULL, with errno. In another name space of processes the number means another one. */
static const struct lines_file *file_map(const struct lines_card *card)
{
	const struct lines_file *file;
	char path[48];
	void *map;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/fd/%u", card->pid, card->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return NULL;
	map = file_fits(fd) ? mmap(NULL, sizeof(*file), PROT_READ, MAP_SHARED, fd, 0)
			    : MAP_FAILED;
	close(fd);
	if (map == MAP_FAILED) {
		errno = ESTALE;
		return NULL;
	}
	file = map;
	if (file->magic == LINES_MAGIC &&
	    !memcmp(file->nonce, card->nonce, sizeof(card->nonce)))
		return file;
	munmap(map, sizeof(*file));
	errno = ESTALE;
	return NULL;
}

/* Before its memory is found by the same number: so it is the process that has that. */
static int life_watch(const struct lines_card *card)
{
	/* Linux 5.3; without it a rank's end shows by what the provider says. */
#ifdef SYS_pidfd_open
	return (int)syscall(SYS_pidfd_open, (pid_t)card->pid, 0);
#else
	(void)card;
	return -1;
#endif
}

bool lines_mem_ended(const struct lines_mem *mem, int32_t rank)
{
	struct pollfd p = {.fd = rank < mem->size ? mem->life[rank] : -1,
			   .events = POLLIN};

	return p.fd >= 0 && poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
}

int lines_mem_read(const struct lines_mem *mem, int32_t rank, void *dst, uint64_t addr,
		   size_t len)
{
	const struct lines_file *file = mem->of[rank];
	uint8_t nonce[sizeof(file->nonce)];
	/* The nonce is read together with it: the number may be another process's by
	 * now. */
	struct iovec here[2] = {{dst, len}, {nonce, sizeof(nonce)}};
	struct iovec there[2] = {{(void *)(uintptr_t)addr, len},
				 {(void *)(uintptr_t)file->nonce_at, sizeof(nonce)}};
	size_t done = 0;

	for (;;) {
		const ssize_t n =
			process_vm_readv((pid_t)mem->pid[rank], here, 2, there, 2, 0);

		if (n < 0)
			return errno;
		done += (size_t)n;
		if (done == len + sizeof(nonce))
			break;
		/* Up to a page that is not there; the rest of it says why. */
		if (n == 0 || done >= len)
			return EFAULT;
		here[0] = (struct iovec){(char *)dst + done, len - done};
		there[0] = (struct iovec){(void *)(uintptr_t)(addr + done), len - done};
	}
	return memcmp(nonce, file->nonce, sizeof(nonce)) ? ESRCH : 0;
}

/* Whether the memory of all of our node can be read where it lies. */
static bool far_try(struct lines_mem *mem, const int32_t *lead, int32_t self)
{
	for (int32_t i = 0; i < mem->size; i++) {
		uint64_t word;
		int rc;

		if (lead[i] != lead[self] || i == self)
			continue;
		rc = lines_mem_read(mem, i, &word, mem->of[i]->nonce_at,
				    sizeof(mem->own->nonce));
		if (!rc)
			continue;
		lines_say(mem, "what rank %d, process %u, gives cannot be read: %s", i,
			  mem->pid[i], strerror(rc));
		return false;
	}
	return true;
}

static int32_t node_ranks(const int32_t *lead, int32_t size, int32_t self)
{
	int32_t count = 0;

	for (int32_t i = 0; i < size; i++)
		count += lead[i] == lead[self];
	return count;
}

void lines_mem_map(struct lines_mem *mem, const int32_t *lead,
		   const struct lines_card *(*card)(const void *arg, int32_t rank),
		   const void *arg, int32_t size, int32_t self)
{
	const int32_t here = node_ranks(lead, size, self);

	if (!mem->own || here < 2)
		return;
	if (here > LINES_NODE_MAX) {
		lines_say(mem, "%d ranks on this node, lines are for at most %d", here,
			  LINES_NODE_MAX);
		return;
	}
	mem->of = calloc((size_t)size, sizeof(*mem->of));
	mem->life = malloc((size_t)size * sizeof(*mem->life));
	mem->pid = calloc((size_t)size, sizeof(*mem->pid));
	mem->size = mem->of && mem->life && mem->pid ? size : 0;
	for (int32_t i = 0; i < mem->size; i++)
		mem->life[i] = -1;
	for (int32_t i = 0; i < mem->size; i++) {
		if (lead[i] != lead[self])
			continue;
		mem->of[i] = i == self ? mem->own : NULL;
		mem->pid[i] = card(arg, i)->pid;
		if (i != self && card(arg, i)->pid) {
			mem->life[i] = life_watch(card(arg, i));
			mem->of[i] = file_map(card(arg, i));
		} else {
			errno = ENOENT;
		}
		if (!mem->of[i]) {
			lines_say(mem, "the memory of rank %d, process %u: %s", i,
				  card(arg, i)->pid, strerror(errno));
			return;
		}
	}
	if (mem->size)
		mem->level = !mem->only_short && far_try(mem, lead, self) ? LINES_FAR
									  : LINES_NEAR;
}

void lines_mem_agree(struct lines_mem *mem, const int32_t *lead, int32_t self,
		     enum lines_level (*of)(const void *arg, int32_t rank),
		     const void *arg)
{
	mem->good = mem->level;
	for (int32_t i = 0; i < mem->size && mem->good; i++) {
		if (lead[i] != lead[self] || of(arg, i) >= mem->good)
			continue;
		mem->good = of(arg, i);
		if (mem->good == LINES_NONE)
			lines_say(mem, "rank %d has none", i);
		else
			lines_say(mem, "rank %d cannot read what others give", i);
	}
	if (mem->fd >= 0)
		close(mem->fd);
	mem->fd = -1;
}

void lines_mem_close(struct lines_mem *mem)
{
	for (int32_t i = 0; i < mem->size; i++) {
		if (mem->of[i] && mem->of[i] != mem->own)
			munmap((void *)(uintptr_t)mem->of[i], sizeof(struct lines_file));
		if (mem->life[i] >= 0)
			close(mem->life[i]);
	}
	free(mem->of);
	free(mem->life);
	free(mem->pid);
	if (mem->own)
		munmap(mem->own, sizeof(struct lines_file));
	if (mem->fd >= 0)
		close(mem->fd);
	*mem = (struct lines_mem){.fd = -1};
}

struct lines_area *lines_mem_own(const struct lines_mem *mem, uint32_t number)
{
	return &mem->own->area[number];
}

const struct lines_area *lines_mem_of(const struct lines_mem *mem, int32_t rank,
				      uint32_t number)
{
	return &mem->of[rank]->area[number];
}
