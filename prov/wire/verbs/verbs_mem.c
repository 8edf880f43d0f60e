/* SPDX-License-Identifier: BSD-2-Clause */
/* Registrations of a domain, with every rail. Rules D1 to D3. */
#include "config.h"

#include "prov/wire/verbs/verbs_mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include "prov/mem/fork.h"
#include "prov/mem/params.h"

#define REG_BUCKETS 1024u
#define BIN_SIZE    4096u

/* A region of the application, by its key. */
struct reg {
	struct list node;
	uint64_t key;
	struct list mrs;
};

static pthread_mutex_t doms_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list doms = {&doms, &doms};

static struct list *reg_bucket(struct verbs_dom *dom, uint64_t key)
{
	uint64_t h = key * UINT64_C(0x9e3779b97f4a7c15);

	return &dom->regs[h >> 54 & (REG_BUCKETS - 1)];
}

static void mr_warn(size_t len, const char *rail, int err)
{
	struct verbs_error why = {""};
	bool low = err == ENOMEM && verbs_memlock_bad(&why);

	FI_WARN(&weft_provider, FI_LOG_MR, "registering %zu bytes with %s: %s%s%s\n", len,
		rail, strerror(err), low ? "; " : "", low ? why.text : "");
}

static int mr_error(int err)
{
	switch (err) {
	case EFAULT:
	case EACCES: /* memory that can't be written */
		return -FI_EFAULT;
	case ENOMEM:
	case EAGAIN:
	case ENOSPC:
		return -FI_ENOMEM;
	case EOPNOTSUPP:
		return -FI_EOPNOTSUPP;
	default:
		return -FI_EIO;
	}
}

static bool is_all(const void *start, size_t len)
{
	return !start && len == SIZE_MAX;
}

/* Pages are fetched when they are needed; none is locked. */
static struct ibv_mr *mr_on_demand(const struct verbs_dom *dom, uint32_t r, void *start,
				   size_t len, int access)
{
	const struct verbs_rail *rail = &dom->dev->rail[r];

	if (is_all(start, len) && !rail->limits.odp_all) {
		FI_WARN(&weft_provider, FI_LOG_MR,
			"all memory can't be one region with %s, which has no implicit "
			"on-demand paging: register the buffers that peers use\n",
			rail->name);
		errno = EOPNOTSUPP;
		return NULL;
	}
	return dom->dev->lib->reg_mr(rail->pd, start, len, access | IBV_ACCESS_ON_DEMAND);
}

/* What is said where a device, or the kernel, or the library has no such call. */
static bool is_lacking(int err)
{
	return err == EOPNOTSUPP || err == ENOSYS || err == EPROTONOSUPPORT ||
	       err == ENOTTY;
}

/* By its descriptor; NULL with EOPNOTSUPP: only by its mapping. */
static struct ibv_mr *mr_of_dmabuf(const struct verbs_dom *dom, uint32_t r, void *start,
				   size_t len, int access,
				   const struct mem_dmabuf *dmabuf)
{
	const struct verbs_rail *rail = &dom->dev->rail[r];
	struct ibv_mr *mr = NULL;

	errno = EOPNOTSUPP;
	if (dom->dev->lib->reg_dmabuf_mr)
		mr = dom->dev->lib->reg_dmabuf_mr(rail->pd, dmabuf->offset, len,
						  (uintptr_t)start, dmabuf->fd, access);
	if (!mr && is_lacking(errno)) {
		FI_INFO(&weft_provider, FI_LOG_MR,
			"%s takes no dmabuf: its mapping is registered\n", rail->name);
		errno = EOPNOTSUPP;
	}
	return mr;
}

static struct ibv_mr *mr_of_rail(const struct verbs_dom *dom, uint32_t r, void *start,
				 size_t len, int access, unsigned flags,
				 const struct mem_dmabuf *dmabuf)
{
	const struct verbs_lib *lib = dom->dev->lib;
	const struct verbs_rail *rail = &dom->dev->rail[r];
	struct ibv_mr *mr = NULL;

	if (dmabuf)
		mr = mr_of_dmabuf(dom, r, start, len, access, dmabuf);
	if (mr || (dmabuf && errno != EOPNOTSUPP))
		return mr;
	errno = 0;
	if (is_all(start, len))
		return mr_on_demand(dom, r, start, len, access);
	if ((flags & VERBS_MR_RELAXED) && lib->reg_mr_iova2)
		mr = lib->reg_mr_iova2(rail->pd, start, len, (uintptr_t)start,
				       (unsigned)access | IBV_ACCESS_RELAXED_ORDERING);
	else
		mr = lib->reg_mr(rail->pd, start, len, access);
	if (mr || errno != ENOMEM || !(flags & VERBS_MR_DEMAND) || !rail->limits.odp)
		return mr;
	mr = mr_on_demand(dom, r, start, len, access);
	if (mr)
		FI_INFO(&weft_provider, FI_LOG_MR,
			"%zu bytes can't be locked for %s: paged in on demand\n", len,
			rail->name);
	else
		errno = ENOMEM;
	return mr;
}

static uint32_t rail_of_pd(const struct verbs_dev *dev, uint32_t r)
{
	for (uint32_t i = 0; i < r; i++)
		if (dev->rail[i].pd == dev->rail[r].pd)
			return i;
	return r;
}

static int mr_add(struct verbs_dom *dom, void *start, size_t len, int access,
		  unsigned flags, const struct mem_dmabuf *dmabuf, struct verbs_mr **out)
{
	struct verbs_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return -FI_ENOMEM;
	list_init(&mr->node);
	mr->start = (uintptr_t)start;
	mr->len = len;
	for (uint32_t r = 0; r < dom->dev->rails; r++) {
		uint32_t same = rail_of_pd(dom->dev, r);

		if (same == r) {
			mr->mr[r] = mr_of_rail(dom, r, start, len, access, flags, dmabuf);
			if (!mr->mr[r]) {
				int err = errno ? errno : EIO;

				if (err != EOPNOTSUPP)
					mr_warn(len, dom->dev->rail[r].name, err);
				verbs_mr_drop(dom, mr);
				return dmabuf && (err == EINVAL || err == EBADF)
					       ? -FI_EINVAL
					       : mr_error(err);
			}
		}
		mr->lkey[r] = mr->mr[same]->lkey;
		mr->rkey[r] = mr->mr[same]->rkey;
	}
	*out = mr;
	return 0;
}

int verbs_mr_add(struct verbs_dom *dom, void *start, size_t len, int access,
		 unsigned flags, struct verbs_mr **out)
{
	return mr_add(dom, start, len, access, flags, NULL, out);
}

void verbs_mr_drop(struct verbs_dom *dom, struct verbs_mr *mr)
{
	for (uint32_t r = 0; r < dom->dev->rails; r++) {
		int err = mr->mr[r] ? dom->dev->lib->dereg_mr(mr->mr[r]) : 0;

		if (err)
			FI_WARN(&weft_provider, FI_LOG_MR,
				"giving up %zu bytes with %s: %s; the device may still "
				"reach them\n",
				mr->len, dom->dev->rail[r].name, strerror(err));
	}
	free(mr);
}

/* ---- the table's own memory ---------------------------------------------------------
 */

static int keys_mem_add(void *arg, void *start, size_t len, void **handle,
			uint32_t rkey[DQPLB_RAILS_MAX])
{
	struct verbs_mr *mr;
	int ret = verbs_mr_add(arg, start, len,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, 0, &mr);

	if (ret)
		return ret;
	memcpy(rkey, mr->rkey, sizeof(mr->rkey));
	*handle = mr;
	return 0;
}

static void keys_mem_drop(void *arg, void *handle)
{
	verbs_mr_drop(arg, handle);
}

static const struct verbs_keys_ops keys_ops = {keys_mem_add, keys_mem_drop};

static int bin_open(struct verbs_dom *dom)
{
	void *mem = mmap(NULL, BIN_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (mem == MAP_FAILED)
		return -FI_ENOMEM;
	ret = verbs_mr_add(dom, mem, BIN_SIZE, IBV_ACCESS_LOCAL_WRITE, 0, &dom->bin);
	if (ret)
		munmap(mem, BIN_SIZE);
	return ret;
}

static void bin_close(struct verbs_dom *dom)
{
	void *mem = (void *)dom->bin->start;

	verbs_mr_drop(dom, dom->bin);
	munmap(mem, BIN_SIZE);
}

/* ---- domains ------------------------------------------------------------------------
 */

static int dom_open(struct mem_keytab *owner, struct verbs_dom **out,
		    struct verbs_error *error)
{
	struct verbs_dom *dom = calloc(1, sizeof(*dom));
	struct verbs_want want;
	int ret;

	if (!dom)
		return -FI_ENOMEM;
	dom->owner = owner;
	dom->generation = mem_fork_generation();
	dom->refs = 1;
	/* Names of an earlier domain at the same address mean nothing. */
	if (getrandom(&dom->next_name, sizeof(dom->next_name), 0) < 0)
		dom->next_name = (uint64_t)getpid() << 32;
	dom->next_incarnation = (uint32_t)(dom->next_name >> 32);
	dom->regs = malloc(REG_BUCKETS * sizeof(*dom->regs));
	if (!dom->regs) {
		free(dom);
		return -FI_ENOMEM;
	}
	for (uint32_t i = 0; i < REG_BUCKETS; i++)
		list_init(&dom->regs[i]);
	ret = mem_keyview_own(owner, &dom->view);
	if (ret)
		goto err_regs;
	verbs_want_read(&want);
	ret = verbs_dev_open(&want, &dom->dev, error);
	if (ret)
		goto err_view;
	ret = verbs_keys_open(dom->dev->rails, &keys_ops, dom, &dom->keys);
	if (ret)
		goto err_dev;
	ret = bin_open(dom);
	if (ret)
		goto err_keys;
	verbs_dev_log(dom->dev);
	pthread_mutex_init(&dom->mutex, NULL);
	*out = dom;
	return 0;

err_keys:
	verbs_keys_close(dom->keys);
err_dev:
	verbs_dev_close(dom->dev);
err_view:
	mem_keyview_close(dom->view);
err_regs:
	free(dom->regs);
	free(dom);
	return ret;
}

int verbs_dom_get(struct mem_keytab *owner, struct verbs_dom **out,
		  struct verbs_error *error)
{
	int ret;

	pthread_mutex_lock(&doms_lock);
	list_foreach (n, &doms) {
		struct verbs_dom *dom = container_of(n, struct verbs_dom, node);

		/* What a forked child inherited is its parent's, also where a key table
		 * of its own comes to lie at the address of the parent's. */
		if (dom->owner == owner && dom->generation == mem_fork_generation()) {
			dom->refs++;
			*out = dom;
			pthread_mutex_unlock(&doms_lock);
			return 0;
		}
	}
	error->text[0] = '\0';
	ret = dom_open(owner, out, error);
	if (ret == 0)
		list_push_back(&doms, &(*out)->node);
	pthread_mutex_unlock(&doms_lock);
	return ret;
}

static void reg_free(struct verbs_dom *dom, struct reg *reg)
{
	struct list *n;

	while ((n = list_pop_front(&reg->mrs)))
		verbs_mr_drop(dom, container_of(n, struct verbs_mr, node));
	free(reg);
}

void verbs_dom_put(struct verbs_dom *dom)
{
	struct list *n;

	pthread_mutex_lock(&doms_lock);
	if (--dom->refs > 0) {
		pthread_mutex_unlock(&doms_lock);
		return;
	}
	list_remove(&dom->node);
	pthread_mutex_unlock(&doms_lock);
	for (uint32_t i = 0; i < REG_BUCKETS; i++)
		while ((n = list_pop_front(&dom->regs[i])))
			reg_free(dom, container_of(n, struct reg, node));
	bin_close(dom);
	verbs_keys_close(dom->keys);
	verbs_dev_close(dom->dev);
	mem_keyview_close(dom->view);
	pthread_mutex_destroy(&dom->mutex);
	free(dom->regs);
	free(dom);
}

/* ---- memory and keys ----------------------------------------------------------------
 */

int verbs_dom_mem_add(struct verbs_dom *dom, void *start, size_t len,
		      struct verbs_mr **out)
{
	int ret = verbs_mr_add(dom, start, len, IBV_ACCESS_LOCAL_WRITE, VERBS_MR_RELAXED,
			       out);

	/* Memory that can only be read can still be sent from. */
	return ret == -FI_EFAULT ? verbs_mr_add(dom, start, len, 0, 0, out) : ret;
}

/* Peers pull what is announced by name; nothing lets them write there (D3). It is a
 * registration of its own, so that no peer reaches what was never announced. Mutex. */
static int mr_tell(struct verbs_dom *dom, struct verbs_mr *mr)
{
	struct verbs_keys_entry e = {.space = VERBS_KEYS_NAME,
				     .access = VERBS_KEYS_READ,
				     .virt_addr = true,
				     .pieces = 1};
	int ret = verbs_mr_add(dom, (void *)mr->start, mr->len, IBV_ACCESS_REMOTE_READ, 0,
			       &mr->told);

	if (ret) {
		mr->told = NULL;
		return ret;
	}
	e.piece[0].addr = mr->start;
	e.piece[0].len = mr->len;
	memcpy(e.piece[0].rkey, mr->told->rkey, sizeof(mr->told->rkey));
	e.key = ++dom->next_name;
	if (e.key == 0)
		e.key = ++dom->next_name;
	e.incarnation = ++dom->next_incarnation;
	ret = verbs_keys_insert(dom->keys, &e);
	if (ret) {
		verbs_mr_drop(dom, mr->told);
		mr->told = NULL;
		return ret;
	}
	mr->name = e.key;
	return 0;
}

uint64_t verbs_dom_mem_name(struct verbs_dom *dom, struct verbs_mr *mr)
{
	uint64_t name;
	int ret = 0;

	pthread_mutex_lock(&dom->mutex);
	if (!mr->name)
		ret = mr_tell(dom, mr);
	name = mr->name;
	pthread_mutex_unlock(&dom->mutex);
	if (ret)
		FI_WARN(&weft_provider, FI_LOG_MR, "announcing %zu bytes: %s\n", mr->len,
			fi_strerror(-ret));
	return name;
}

void verbs_dom_mem_drop(struct verbs_dom *dom, struct verbs_mr *mr)
{
	pthread_mutex_lock(&dom->mutex);
	if (mr->name)
		verbs_keys_remove(dom->keys, VERBS_KEYS_NAME, mr->name);
	pthread_mutex_unlock(&dom->mutex);
	if (mr->told)
		verbs_mr_drop(dom, mr->told);
	verbs_mr_drop(dom, mr);
}

static struct reg *reg_find(struct verbs_dom *dom, uint64_t key)
{
	list_foreach (n, reg_bucket(dom, key)) {
		struct reg *reg = container_of(n, struct reg, node);

		if (reg->key == key)
			return reg;
	}
	return NULL;
}

static int key_access(const struct verbs_dom *dom, const struct mem_region *region)
{
	const uint64_t both = FI_REMOTE_READ | FI_REMOTE_WRITE;
	int access = 0;

	if (region->access & FI_REMOTE_READ)
		access |= IBV_ACCESS_REMOTE_READ;
	if (region->access & FI_REMOTE_WRITE)
		access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	if (dom->dev->native && (region->access & both) == both)
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	return access;
}

/* Registers the pieces and fills the entry. */
static int reg_fill(struct verbs_dom *dom, struct reg *reg,
		    const struct mem_region *region, struct verbs_keys_entry *e)
{
	uint32_t wanted = mem_keyview_events(dom->view);

	if (region->access & FI_REMOTE_READ)
		e->access |= VERBS_KEYS_READ;
	if (region->access & FI_REMOTE_WRITE)
		e->access |= VERBS_KEYS_WRITE;
	if (wanted & MEM_EVENTS_EP)
		e->access |= VERBS_KEYS_COUNT_EP;
	if (wanted & MEM_EVENTS_MR)
		e->access |= VERBS_KEYS_COUNT_MR;
	e->virt_addr = region->virt_addr;
	e->pieces = (uint8_t)region->iov_count;
	for (uint32_t i = 0; i < region->iov_count; i++) {
		struct verbs_keys_piece *p = &e->piece[i];
		struct verbs_mr *mr;
		int ret;

		p->addr = (uintptr_t)region->iov[i].iov_base;
		p->len = region->iov[i].iov_len;
		if (p->len == 0)
			continue;
		ret = mr_add(dom, region->iov[i].iov_base, p->len,
			     key_access(dom, region), VERBS_MR_DEMAND, region->dmabuf,
			     &mr);
		if (ret)
			return ret;
		list_push_back(&reg->mrs, &mr->node);
		memcpy(p->rkey, mr->rkey, sizeof(mr->rkey));
	}
	return 0;
}

int verbs_dom_key_add(struct verbs_dom *dom, uint64_t key,
		      const struct mem_region *region)
{
	struct verbs_keys_entry e = {.space = VERBS_KEYS_APP, .key = key};
	struct reg *reg;
	int ret = 0;

	if (region->iov_count == 0 || region->iov_count > VERBS_KEYS_PIECES)
		return -FI_EINVAL;
	pthread_mutex_lock(&dom->mutex);
	if (reg_find(dom, key))
		goto out; /* another endpoint's turn */
	reg = calloc(1, sizeof(*reg));
	if (!reg) {
		ret = -FI_ENOMEM;
		goto out;
	}
	reg->key = key;
	list_init(&reg->mrs);
	e.incarnation = ++dom->next_incarnation;
	ret = reg_fill(dom, reg, region, &e);
	if (ret == 0)
		ret = verbs_keys_insert(dom->keys, &e);
	if (ret)
		reg_free(dom, reg);
	else
		list_push_back(reg_bucket(dom, key), &reg->node);
out:
	pthread_mutex_unlock(&dom->mutex);
	return ret;
}

void verbs_dom_key_drop(struct verbs_dom *dom, uint64_t key)
{
	struct reg *reg;

	pthread_mutex_lock(&dom->mutex);
	reg = reg_find(dom, key);
	if (reg) {
		list_remove(&reg->node);
		verbs_keys_remove(dom->keys, VERBS_KEYS_APP, key);
	}
	pthread_mutex_unlock(&dom->mutex);
	/* From the return on no device lets anybody write by it (rule D3). */
	if (reg)
		reg_free(dom, reg);
}
