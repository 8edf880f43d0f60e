/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains and registrations. */
#include "config.h"

#include "fabtests/emuverbs/mr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fabtests/emuverbs/late.h"
#include "gpu/mock/place.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* Up to here a copy is by the processor's own stores, 8 bytes of which are never torn. */
#define SMALL	  256u
#define KEY_SHIFT 8
#define REMOTE	  1u
#define WRITES \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define REMOTES \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define KNOWN                                                           \
	(WRITES | REMOTES | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND | \
	 IBV_ACCESS_OPTIONAL_RANGE)

EMU_API struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct emu_context *c = emu_context_of(context);
	struct emu_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->ibv.context = context;
	pd->dev = c->dev;
	emu_lock();
	c->objects++;
	emu_unlock();
	return &pd->ibv;
}

EMU_API int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct emu_pd *pd = emu_pd_of(ibv);
	int rc = 0;

	emu_lock();
	if (pd->users > 0)
		rc = EBUSY;
	else
		emu_context_of(ibv->context)->objects--;
	emu_unlock();
	if (rc == 0)
		free(pd);
	return rc;
}

/* A slot for it, the one that became free last: so that old keys meet new memory. */
static bool key_give(struct emu_dev *dev, struct emu_mr *mr)
{
	uint32_t at;
	struct emu_key_slot *s;

	if (dev->mrs >= dev->set->max_mr)
		return false;
	if (dev->free_key == 0) {
		s = realloc(dev->key, (dev->keys + 64) * sizeof(*s));
		if (!s)
			return false;
		dev->key = s;
		memset(s + dev->keys, 0, 64 * sizeof(*s));
		for (at = dev->keys + 64; at > dev->keys; at--) {
			s[at - 1].next_free = dev->free_key;
			dev->free_key = at;
		}
		dev->keys += 64;
	}
	at = dev->free_key;
	s = &dev->key[at - 1];
	dev->free_key = s->next_free;
	s->mr = mr;
	mr->slot = at;
	mr->key = at << KEY_SHIFT | (uint32_t)(s->tag & 0x7f) << 1;
	mr->ibv.handle = at;
	mr->ibv.lkey = mr->key;
	mr->ibv.rkey = mr->key | REMOTE;
	dev->mrs++;
	return true;
}

static void key_take(struct emu_dev *dev, struct emu_mr *mr)
{
	struct emu_key_slot *s = &dev->key[mr->slot - 1];

	s->mr = NULL;
	s->tag++;
	s->next_free = dev->free_key;
	dev->free_key = mr->slot;
	dev->mrs--;
}

static uint64_t pages_of(const void *addr, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)addr;

	return len ? ((at + len + page - 1) & ~(page - 1)) - (at & ~(page - 1)) : 0;
}

static bool lock_fits(const struct emu_dev *dev, uint64_t bytes)
{
	uint64_t most = dev->set->max_locked * 1024;

	return most == 0 || (bytes <= most && dev->locked <= most - bytes);
}

/* Pages are there and may be used as asked, as a device that pins them would find out. */
static int populate(const void *addr, size_t len, unsigned access)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)addr & ~(page - 1);
	uintptr_t to = ((uintptr_t)addr + len + page - 1) & ~(page - 1);

	if (len == 0)
		return 0;
	if (to <= from)
		return EFAULT;
	if (madvise((void *)from, to - from,
		    access & WRITES ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
		return 0;
	/* Kernels before 5.14 know neither; the others, that it may not be written. */
	if (errno == EINVAL &&
	    madvise((void *)from, to - from, MADV_POPULATE_READ) != 0 && errno == EINVAL)
		return 0;
	return EFAULT;
}

/* Whether it may be registered; what isn't on demand is there then. */
static int mr_check(const struct emu_device *set, const void *addr, size_t len,
		    unsigned access)
{
	bool whole = !addr && len == SIZE_MAX;

	if (!(access & IBV_ACCESS_ON_DEMAND))
		return whole ? EINVAL : populate(addr, len, access);
	if (set->demand == EMU_DEMAND_NONE ||
	    (whole && set->demand != EMU_DEMAND_IMPLICIT))
		return EOPNOTSUPP;
	return 0;
}

/* Bytes that it keeps locked. */
static uint64_t mr_locked(const void *addr, size_t len, unsigned access)
{
	return access & IBV_ACCESS_ON_DEMAND ? 0 : pages_of(addr, len);
}

/* mapped: by the device itself, so they are there. */
static struct ibv_mr *mr_make(struct ibv_pd *ibv, void *addr, size_t len, uint64_t iova,
			      unsigned access, bool mapped)
{
	struct emu_pd *pd = emu_pd_of(ibv);
	struct emu_mr *mr;
	int rc = 0;

	/* Who may write from afar may write from here. */
	if (access & ~(unsigned)KNOWN ||
	    (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	     !(access & IBV_ACCESS_LOCAL_WRITE)) ||
	    iova + len < iova)
		rc = EINVAL;
	else if (!mapped)
		rc = mr_check(pd->dev->set, addr, len, access);
	mr = rc == 0 ? calloc(1, sizeof(*mr)) : NULL;
	if (!mr) {
		errno = rc ? rc : ENOMEM;
		return NULL;
	}
	mr->ibv = (struct ibv_mr){
		.context = ibv->context, .pd = ibv, .addr = addr, .length = len};
	mr->pd = pd;
	mr->iova = iova;
	mr->access = access;
	emu_lock();
	if (!lock_fits(pd->dev, mr_locked(addr, len, access)) || !key_give(pd->dev, mr)) {
		rc = ENOMEM;
	} else {
		pd->dev->locked += mr_locked(addr, len, access);
		pd->users++;
	}
	emu_unlock();
	if (rc) {
		free(mr);
		errno = rc;
		return NULL;
	}
	return &mr->ibv;
}

static struct ibv_mr *mr_new(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
			     unsigned access)
{
	return mr_make(pd, addr, len, iova, access, false);
}

EMU_API struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
				  int access)
{
	return mr_new(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

EMU_API struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
				       uint64_t iova, int access)
{
	return mr_new(pd, addr, length, iova, (unsigned)access);
}

EMU_API struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
					uint64_t iova, unsigned int access)
{
	return mr_new(pd, addr, length, iova, access);
}

/* Where the bytes of a DMA buffer are: of a file that can be mapped, or of a GPU of
 * gpu/mock, piece by piece. Whole pages; NULL, and errno. */
static void *dmabuf_map_file(int fd, uint64_t offset, size_t len, uint64_t size)
{
	void *map;

	if (offset > size || len > size - offset) {
		errno = EINVAL;
		return NULL;
	}
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
	if (map != MAP_FAILED)
		return map;
	errno = EINVAL;
	return NULL;
}

/* The part of a piece that lies in [offset, offset + len), which map stands for. */
static bool place_map(const struct place *p, uint64_t at, char *map, uint64_t offset,
		      size_t len)
{
	uint64_t from = at > offset ? at : offset;
	uint64_t to = at + p->len < offset + len ? at + p->len : offset + len;
	char path[64];
	void *piece;
	int fd;

	if (from >= to)
		return true;
	snprintf(path, sizeof(path), "/proc/%llu/fd/%llu", (unsigned long long)p->pid,
		 (unsigned long long)p->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	piece = mmap(map + (from - offset), to - from, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_FIXED, fd, (off_t)(p->offset + (from - at)));
	close(fd);
	return piece != MAP_FAILED;
}

static void *dmabuf_map_gpu(int fd, uint64_t offset, size_t len)
{
	char *map = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool good = map != MAP_FAILED;
	struct place p;
	uint64_t at = 0;

	for (off_t i = 0;
	     good && pread(fd, &p, sizeof(p), i * (off_t)sizeof(p)) == (ssize_t)sizeof(p);
	     i++) {
		good = p.magic == PLACE_MAGIC && place_map(&p, at, map, offset, len);
		at += p.len;
	}
	if (good && offset + len <= at)
		return map;
	if (map != MAP_FAILED)
		munmap(map, len);
	errno = EINVAL;
	return NULL;
}

static void *dmabuf_map(int fd, uint64_t offset, size_t len)
{
	struct stat what;
	uint64_t magic;

	if (fstat(fd, &what) < 0)
		return NULL;
	if (what.st_size > 0 && what.st_size % (off_t)sizeof(struct place) == 0 &&
	    pread(fd, &magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	    magic == PLACE_MAGIC)
		return dmabuf_map_gpu(fd, offset, len);
	return dmabuf_map_file(fd, offset, len, (uint64_t)what.st_size);
}

EMU_API struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
					 size_t length, uint64_t iova, int fd, int access)
{
	uint64_t skip = offset % (uint64_t)sysconf(_SC_PAGESIZE);
	struct emu_mr *mr;
	struct ibv_mr *ibv;
	void *map;

	if (!emu_pd_of(pd)->dev->set->dmabuf) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (length == 0 || length + skip < length || (access & IBV_ACCESS_ON_DEMAND)) {
		errno = EINVAL;
		return NULL;
	}
	map = dmabuf_map(fd, offset - skip, length + skip);
	if (!map)
		return NULL;
	ibv = mr_make(pd, (char *)map + skip, length, iova, (unsigned)access, true);
	if (!ibv) {
		int err = errno;

		munmap(map, length + skip);
		errno = err;
		return NULL;
	}
	mr = container_of(ibv, struct emu_mr, ibv);
	mr->map = map;
	mr->map_len = length + skip;
	return ibv;
}

EMU_API int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
			 size_t length, int access)
{
	(void)mr, (void)flags, (void)pd, (void)addr, (void)length, (void)access;
	errno = EOPNOTSUPP;
	return IBV_REREG_MR_ERR_INPUT;
}

/* Bytes are moved with the lock held, so nothing moves once it was had. */
EMU_API int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct emu_mr *mr = container_of(ibv, struct emu_mr, ibv);

	emu_lock();
	emu_late_place(NULL, true);
	key_take(mr->pd->dev, mr);
	mr->pd->dev->locked -= mr_locked(ibv->addr, ibv->length, mr->access);
	mr->pd->users--;
	emu_unlock();
	if (mr->map)
		munmap(mr->map, mr->map_len);
	free(mr);
	return 0;
}

void *emu_mr_find(struct emu_pd *pd, uint32_t key, uint64_t addr, uint64_t len,
		  unsigned access)
{
	uint32_t at = key >> KEY_SHIFT;
	struct emu_key_slot *s;
	struct emu_mr *mr;
	bool remote = access & REMOTES;

	if (at == 0 || at > pd->dev->keys)
		return NULL;
	s = &pd->dev->key[at - 1];
	mr = s->mr;
	if (!mr || key != (mr->key | (remote ? REMOTE : 0)) || mr->pd != pd ||
	    (mr->access & access) != access)
		return NULL;
	if (addr < mr->iova || len > mr->ibv.length ||
	    addr - mr->iova > mr->ibv.length - len)
		return NULL;
	return (char *)mr->ibv.addr + (addr - mr->iova);
}

bool emu_mr_relaxed(const struct emu_pd *pd, uint32_t key)
{
	uint32_t at = key >> KEY_SHIFT;

	return at > 0 && at <= pd->dev->keys && pd->dev->key[at - 1].mr &&
	       (pd->dev->key[at - 1].mr->access & IBV_ACCESS_RELAXED_ORDERING);
}

bool emu_mr_there(const void *at, size_t len)
{
	const char *last = (const char *)at + len - 1;
	char seen[2];
	struct iovec to[2] = {{&seen[0], 1}, {&seen[1], 1}};
	struct iovec from[2] = {{(void *)at, 1}, {(void *)last, 1}};
	ssize_t n = process_vm_readv(emu.pid, to, 2, from, 2, 0);

	/* Where the call is refused nothing can be known. */
	return n == 2 || (n < 0 && errno != EFAULT);
}

bool emu_mr_copy(void *to, const void *from, size_t len)
{
	struct iovec source = {(void *)from, len}, dest = {to, len};

	if (len == 0)
		return true;
	if (len > SMALL) {
		ssize_t n = process_vm_writev(emu.pid, &source, 1, &dest, 1, 0);

		if (n >= 0 || errno == EFAULT)
			return n == (ssize_t)len;
	}
	if (!emu_mr_there(to, len))
		return false;
	if (len == 8 && (uintptr_t)to % 8 == 0) {
		uint64_t v;

		memcpy(&v, from, 8);
		__atomic_store_n((uint64_t *)to, v, __ATOMIC_RELEASE);
	} else {
		memcpy(to, from, len);
	}
	return true;
}

bool emu_mr_scatter(struct emu_pd *pd, const struct ibv_sge *sge, unsigned sges,
		    uint64_t offset, const uint8_t *from, uint64_t len)
{
	for (unsigned i = 0; i < sges && len > 0; i++) {
		uint64_t n = sge[i].length;
		void *at;

		if (offset >= n) {
			offset -= n;
			continue;
		}
		n -= offset;
		if (n > len)
			n = len;
		at = emu_mr_find(pd, sge[i].lkey, sge[i].addr + offset, n,
				 IBV_ACCESS_LOCAL_WRITE);
		if (!at || !emu_mr_copy(at, from, n))
			return false;
		offset = 0;
		from += n;
		len -= n;
	}
	return len == 0;
}

uint64_t emu_sge_sum(const struct ibv_sge *sge, int sges)
{
	uint64_t sum = 0;

	for (int i = 0; i < sges; i++)
		sum += sge[i].length;
	return sum;
}
