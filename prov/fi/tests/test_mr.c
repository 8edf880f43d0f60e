/* SPDX-License-Identifier: BSD-2-Clause */
/* Registration: keys, access, modes; closing waits for peers (rule D3). */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "prov/fi/mr.h"
#include "prov/fi/newer.h"
#include "prov/fi/tests/fi_test.h"
#include "prov/fi/wait.h"
#include "prov/mem/keytab.h"
#include "util/fi_names.h"
#include "util/tap.h"

static char memory[4096];

/* Stands for an endpoint whose peers need a while. */
struct slow {
	struct wfi_quiesce base; /* first */
	int asked;
	int ready_after; /* times */
	uint64_t key;
};

static int slow_quiesce(struct wfi_quiesce *q, uint64_t key, uint64_t deadline_ns)
{
	struct slow *s = (struct slow *)q;

	(void)deadline_ns;
	s->key = key;
	return s->asked++ < s->ready_after ? -FI_EBUSY : 0;
}

/* Stands for an endpoint whose wire wants to hear of keys. */
struct told {
	struct wfi_quiesce base; /* first */
	struct env *e;
	char log[256]; /* "+key", "-key", "?key": added, dropped, asked whether quiet */
	int refuse;    /* what it says of the next key that is added */
	bool granted;  /* whether peers could use the last key when it was added */
	bool left;     /* whether it was in the table when it was dropped */
	struct mem_region region;   /* of the last key */
	struct mem_keytab **wanted; /* or NULL: where to ask */
	uint32_t events;	    /* what was wanted when the last key was added */
};

static int find(struct env *e, uint64_t key, uint64_t addr, uint64_t access);

static void told_log(struct told *t, char what, uint64_t key)
{
	size_t at = strlen(t->log);

	snprintf(t->log + at, sizeof(t->log) - at, "%c%d ", what, (int)key);
}

static int told_add(struct wfi_quiesce *q, uint64_t key, const struct mem_region *region)
{
	struct told *t = (struct told *)q;

	told_log(t, '+', key);
	t->region = *region;
	t->events = t->wanted ? mem_keytab_wanted(*t->wanted) : 0;
	t->granted = find(t->e, key, 0, FI_REMOTE_WRITE) == 0;
	return t->refuse;
}

static void told_drop(struct wfi_quiesce *q, uint64_t key)
{
	struct told *t = (struct told *)q;

	told_log(t, '-', key);
	t->left = find(t->e, key, 0, FI_REMOTE_WRITE) == -FI_ENOKEY;
}

static int told_quiesce(struct wfi_quiesce *q, uint64_t key, uint64_t deadline_ns)
{
	(void)deadline_ns;
	told_log((struct told *)q, '?', key);
	return 0;
}

static void told_init(struct told *t, struct env *e)
{
	*t = (struct told){.base = {.key_add = told_add,
				    .key_drop = told_drop,
				    .quiesce = told_quiesce},
			   .e = e};
	list_init(&t->base.node);
}

static int find(struct env *e, uint64_t key, uint64_t addr, uint64_t access)
{
	struct mem_keyview *view;
	struct iovec iov[MEM_REGION_IOV];
	uint32_t count, incarnation;
	int rc;

	if (mem_keyview_own(wfi_domain_of(e->domain)->keys, &view))
		tap_bail("no view");
	rc = mem_keyview_find(view, key, addr, 8, access, iov, &count, &incarnation);
	mem_keyview_close(view);
	return rc;
}

static void test_user_keys(void)
{
	struct iovec iov[5] = {{memory, 64}, {memory + 128, 64}};
	struct fid_mr *mr, *other;
	struct env e;

	env_open(&e, &(struct env_want){0});
	tap_is_int(
		fi_mr_reg(e.domain, memory, 4096, FI_REMOTE_WRITE, 0, 0xc0de, 0, &mr, &e),
		0, "a key of the application's");
	tap_is_int((int64_t)fi_mr_key(mr), 0xc0de, "is honoured");
	tap_ok(fi_mr_desc(mr) != NULL && mr->fid.context == &e, "descriptor and context");
	tap_is_int(fi_mr_reg(e.domain, memory, 8, FI_REMOTE_READ, 0, 0xc0de, 0, &other,
			     NULL),
		   -FI_ENOKEY, "it is in use");
	tap_is_int(find(&e, 0xc0de, 4088, FI_REMOTE_WRITE), 0, "addresses are offsets");
	tap_is_int(find(&e, 0xc0de, 4089, FI_REMOTE_WRITE), -FI_EINVAL,
		   "within the region");
	tap_is_int(find(&e, 0xc0de, 0, FI_REMOTE_READ), -FI_EACCES, "as access allows");
	tap_is_int(fi_close(&e.domain->fid), -FI_EBUSY,
		   "the domain waits for its regions");
	tap_is_int(fi_close(&mr->fid), 0, "close");
	tap_is_int(find(&e, 0xc0de, 0, FI_REMOTE_WRITE), -FI_ENOKEY, "the key is gone");
	tap_is_int(fi_mr_reg(e.domain, memory, 8, 0, 0, 1, 0, &mr, NULL), 0,
		   "no access at all");
	tap_is_int(
		fi_mr_reg(e.domain, memory, 8, FI_SEND | FI_RECV, 0, 1, 0, &other, NULL),
		0, "local only: no key is taken");
	fi_close(&mr->fid);
	fi_close(&other->fid);
	tap_is_int(fi_mr_regv(e.domain, iov, 2, FI_REMOTE_READ, 0, 7, 0, &mr, NULL), 0,
		   "two pieces");
	tap_is_int(find(&e, 7, 120, FI_REMOTE_READ), 0, "lie back to back");
	fi_close(&mr->fid);
	tap_is_int(fi_mr_regv(e.domain, iov, 5, 0, 0, 7, 0, &mr, NULL), -FI_EINVAL,
		   "too many");
	tap_is_int(fi_mr_regv(e.domain, iov, 0, 0, 0, 7, 0, &mr, NULL), -FI_EINVAL,
		   "none");
	tap_is_int(fi_mr_reg(e.domain, memory, 8, 0, 4, 1, 0, &mr, NULL), -FI_EINVAL,
		   "an offset");
	tap_is_int(fi_mr_reg(e.domain, memory, 8, 1ull << 50, 0, 1, 0, &mr, NULL),
		   -FI_EINVAL, "unknown access");
	tap_is_int(fi_mr_reg(e.domain, memory, 8, 0, 0, 1, 1ull << 50, &mr, NULL),
		   -FI_EBADFLAGS, "unknown flags");
	tap_is_int(
		fi_mr_reg(e.domain, (void *)(UINTPTR_MAX - 3), 8, 0, 0, 1, 0, &mr, NULL),
		-FI_EINVAL, "around the end of memory");
	env_close(&e);
}

static void test_modes(void)
{
	static const struct {
		int mode;
		bool virt;
		bool prov_key;
	} rows[] = {
		{FI_MR_UNSPEC, false, false},
		{FI_MR_SCALABLE, false, false},
		{FI_MR_BASIC, true, true},
		{FI_MR_VIRT_ADDR, true, false},
		{FI_MR_PROV_KEY, false, true},
		{FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED, true, true},
		{FI_MR_LOCAL | FI_MR_ALLOCATED, false, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fid_mr *a, *b;
		struct env e;
		uint64_t base;

		env_open(&e, &(struct env_want){.mr_mode = rows[i].mode});
		fi_mr_reg(e.domain, memory, 4096, FI_REMOTE_READ, 0, 5, 0, &a, NULL);
		tap_is_int(fi_mr_reg(e.domain, memory, 4096, FI_REMOTE_READ, 0, 5, 0, &b,
				     NULL),
			   rows[i].prov_key ? 0 : -FI_ENOKEY, "mode: whose keys");
		if (rows[i].prov_key) {
			tap_ok(fi_mr_key(a) != fi_mr_key(b), "two keys");
			fi_close(&b->fid);
		}
		base = rows[i].virt ? (uintptr_t)memory : 0;
		tap_is_int(find(&e, fi_mr_key(a), base, FI_REMOTE_READ), 0,
			   "mode: addresses");
		tap_is_int(find(&e, fi_mr_key(a), rows[i].virt ? 0 : (uintptr_t)memory,
				FI_REMOTE_READ),
			   -FI_EINVAL, "not the other kind");
		fi_close(&a->fid);
		env_close(&e);
	}
}

static struct fid_ep *ep_new(struct env *e)
{
	struct fid_ep *ep;

	e->info->ep_attr->type = FI_EP_RDM;
	if (fi_endpoint(e->domain, e->info, &ep, NULL))
		tap_bail("no endpoint");
	return ep;
}

static void test_bind(void)
{
	struct fi_mr_attr attr = {.mr_iov = &(struct iovec){memory, 8}, .iov_count = 1};
	struct fi_cntr_attr cntr_attr = {0};
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	struct fid_mr *mr;
	struct env e, other;

	env_open(&e, &(struct env_want){0});
	tap_is_int(fi_mr_regattr(e.domain, &attr, 0, &mr), 0, "regattr");
	ep = ep_new(&e);
	tap_is_int(fi_mr_bind(mr, &ep->fid, 0), 0, "binding an endpoint does no harm");
	tap_is_int(fi_mr_enable(mr), 0, "nor does enabling");
	fi_close(&ep->fid);
	env_open(&other, &(struct env_want){0});
	ep = ep_new(&other);
	tap_is_int(fi_mr_bind(mr, &ep->fid, 0), -FI_EINVAL, "one of another domain");
	fi_close(&ep->fid);
	env_close(&other);
	tap_is_int(fi_mr_bind(mr, &e.fabric->fid, 0), -FI_EINVAL, "not an endpoint");
	fi_cntr_open(e.domain, &cntr_attr, &cntr, NULL);
	tap_is_int(fi_mr_bind(mr, &cntr->fid, FI_SEND), -FI_EBADFLAGS,
		   "no sends are counted");
	tap_is_int(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0, "writes are");
	tap_is_int(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), -FI_EINVAL, "once");
	tap_is_int(fi_close(&cntr->fid), -FI_EBUSY, "the region holds it");
	tap_is_int(fi_close(&mr->fid), 0, "the region closes");
	tap_is_int(fi_close(&cntr->fid), 0, "and gives it back");
	attr.iface = FI_HMEM_CUDA;
	tap_is_int(fi_mr_regattr(e.domain, &attr, 0, &mr), -FI_ENOSYS, "device memory");
	env_close(&e);
}

/* fi_getinfo demands nothing, but the domain is opened with what the caller adds. */
static void env_open_as(struct env *e, int mode)
{
	env_open(e, &(struct env_want){0});
	fi_close(&e->domain->fid);
	e->info->domain_attr->mr_mode = mode;
	tap_ok(fi_domain(e->fabric, e->info, &e->domain, NULL) == 0, "domain, mode %d",
	       mode);
}

static void test_endpoint_mode(void)
{
	struct fid_mr *mr, *other;
	struct fid_ep *ep;
	struct env e;

	env_open_as(&e, FI_MR_ENDPOINT);
	ep = ep_new(&e);
	fi_mr_reg(e.domain, memory, 64, FI_REMOTE_READ, 0, 5, 0, &mr, NULL);
	tap_ok(fi_mr_key(mr) == FI_KEY_NOTAVAIL, "no key yet");
	tap_is_int(find(&e, 5, 0, FI_REMOTE_READ), -FI_EACCES, "nobody may use it");
	tap_is_int(fi_mr_reg(e.domain, memory, 8, FI_REMOTE_READ, 0, 5, 0, &other, NULL),
		   -FI_ENOKEY, "but its key is taken");
	tap_is_int(fi_mr_enable(mr), -FI_EOPBADSTATE, "enabled before it is bound");
	tap_is_int(find(&e, 5, 0, FI_REMOTE_READ), -FI_EACCES, "still not");
	tap_is_int(fi_mr_bind(mr, &ep->fid, 0), 0, "bound");
	tap_is_int(find(&e, 5, 0, FI_REMOTE_READ), -FI_EACCES, "that is not enough");
	tap_is_int(fi_mr_enable(mr), 0, "enabled");
	tap_is_int((int64_t)fi_mr_key(mr), 5, "now it has its key");
	tap_is_int(find(&e, 5, 0, FI_REMOTE_READ), 0, "and may be used");
	tap_is_int(find(&e, 5, 0, FI_REMOTE_WRITE), -FI_EACCES, "as it was registered");
	tap_is_int(fi_mr_enable(mr), 0, "enabling twice is harmless");
	tap_is_int(fi_mr_bind(mr, &ep->fid, 0), -FI_EOPBADSTATE, "binding is over");
	fi_close(&mr->fid);
	tap_is_int(find(&e, 5, 0, FI_REMOTE_READ), -FI_ENOKEY, "closed");
	fi_mr_reg(e.domain, memory, 64, FI_REMOTE_READ, 0, 5, 0, &mr, NULL);
	tap_is_int(fi_close(&mr->fid), 0, "closed without being enabled");
	tap_is_int(find(&e, 5, 0, FI_REMOTE_READ), -FI_ENOKEY, "its key is free");
	fi_close(&ep->fid);
	env_close(&e);
}

static void test_rma_event_mode(void)
{
	struct fi_cntr_attr attr = {0};
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	struct env e;

	env_open_as(&e, FI_MR_RMA_EVENT | FI_MR_PROV_KEY);
	fi_cntr_open(e.domain, &attr, &cntr, NULL);
	fi_mr_reg(e.domain, memory, 64, FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL);
	tap_is_int(find(&e, fi_mr_key(mr), 0, FI_REMOTE_WRITE), 0,
		   "without a counter: as always");
	tap_is_int(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), -FI_EINVAL,
		   "a counter that was not announced");
	fi_close(&mr->fid);
	fi_mr_reg(e.domain, memory, 64, FI_REMOTE_WRITE, 0, 0, FI_RMA_EVENT, &mr, NULL);
	tap_ok(fi_mr_key(mr) == FI_KEY_NOTAVAIL, "announced: no key yet");
	tap_is_int(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0, "bound");
	tap_is_int(fi_mr_enable(mr), 0, "enabled");
	tap_is_int(find(&e, fi_mr_key(mr), 0, FI_REMOTE_WRITE), 0, "usable");
	tap_is_int(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_READ), -FI_EOPBADSTATE,
		   "binding is over");
	fi_close(&mr->fid);
	fi_close(&cntr->fid);
	env_close(&e);
	/* Where nobody demands it, the flag is taken and means nothing. */
	env_open(&e, &(struct env_want){0});
	tap_is_int(fi_mr_reg(e.domain, memory, 8, FI_REMOTE_WRITE, 0, 3, FI_RMA_EVENT,
			     &mr, NULL),
		   0, "FI_RMA_EVENT without the mode");
	tap_is_int(find(&e, 3, 0, FI_REMOTE_WRITE), 0, "usable at once");
	fi_close(&mr->fid);
	env_close(&e);
}

static void test_raw_keys(void)
{
	uint8_t raw[16] = {0}, wrong[8];
	size_t size = 0;
	uint64_t base = 1, key = 0;
	struct fid_mr *mr, *local;
	struct env e;

	env_open_as(&e, FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY);
	fi_mr_reg(e.domain, memory, 64, FI_REMOTE_READ, 0, 0, 0, &mr, NULL);
	fi_mr_reg(e.domain, memory, 64, FI_SEND, 0, 0, 0, &local, NULL);
	tap_ok(fi_mr_key(mr) == FI_KEY_NOTAVAIL, "there is a raw key only");
	tap_is_int(fi_mr_raw_attr(mr, &base, NULL, &size, 0), -FI_ETOOSMALL, "how long");
	tap_is_int((int64_t)size, 8, "as announced");
	size = 7;
	tap_is_int(fi_mr_raw_attr(mr, &base, raw, &size, 0), -FI_ETOOSMALL,
		   "a byte is missing");
	tap_ok(size == 8 && base == 1 && raw[0] == 0, "nothing but the size is said");
	tap_is_int(fi_mr_raw_attr(mr, &base, NULL, &size, 0), -FI_EINVAL, "no place");
	tap_is_int(fi_mr_raw_attr(mr, &base, raw, NULL, 0), -FI_EINVAL, "no size");
	tap_is_int(fi_mr_raw_attr(mr, &base, raw, &size, 1), -FI_EBADFLAGS, "flags");
	size = sizeof(raw);
	tap_is_int(fi_mr_raw_attr(mr, &base, raw, &size, 0), 0, "the key");
	tap_ok(size == 8 && base == (uintptr_t)memory, "its length, the region's base");
	tap_is_int(fi_mr_raw_attr(local, &base, raw + 8, &size, 0), -FI_ENOKEY,
		   "a region that no peer may use");
	tap_is_int(fi_mr_map_raw(e.domain, base, raw, 8, &key, 0), 0, "mapped");
	tap_is_int(find(&e, key, base, FI_REMOTE_READ), 0, "it names the region");
	tap_is_int(fi_mr_unmap_key(e.domain, key), 0, "unmapped");
	tap_is_int(fi_mr_map_raw(e.domain, base, raw, 7, &key, 0), -FI_EINVAL, "short");
	tap_is_int(fi_mr_map_raw(e.domain, base, raw, 16, &key, 0), -FI_EINVAL, "long");
	tap_is_int(fi_mr_map_raw(e.domain, base, raw, 0, &key, 0), -FI_EINVAL, "empty");
	tap_is_int(fi_mr_map_raw(e.domain, base, NULL, 8, &key, 0), -FI_EINVAL, "none");
	tap_is_int(fi_mr_map_raw(e.domain, base, raw, 8, NULL, 0), -FI_EINVAL, "nowhere");
	tap_is_int(fi_mr_map_raw(e.domain, base, raw, 8, &key, 2), -FI_EBADFLAGS,
		   "flags");
	memset(wrong, 0xff, sizeof(wrong));
	tap_is_int(fi_mr_map_raw(e.domain, base, wrong, 8, &key, 0), -FI_ENOKEY,
		   "what no key is");
	for (int i = 0; i < 64; i++) { /* any other bytes: known to the table or not */
		memcpy(wrong, raw, 8);
		wrong[i / 8] ^= (uint8_t)(1u << (i % 8));
		tap_ok(fi_mr_map_raw(e.domain, 0, wrong, 8, &key, 0) == 0 &&
			       find(&e, key, base, FI_REMOTE_READ) == -FI_ENOKEY,
		       "a key with bit %d turned", i);
	}
	fi_close(&local->fid);
	fi_close(&mr->fid);
	env_close(&e);
	/* Everybody may ask for one. */
	env_open(&e, &(struct env_want){0});
	fi_mr_reg(e.domain, memory, 64, FI_REMOTE_READ, 0, 0xabc, 0, &mr, NULL);
	size = 8;
	tap_is_int(fi_mr_raw_attr(mr, &base, raw, &size, 0), 0, "without the mode");
	fi_mr_map_raw(e.domain, base, raw, 8, &key, 0);
	tap_ok(key == 0xabc && base == 0, "the application's key, offsets");
	fi_close(&mr->fid);
	env_close(&e);
}

static void test_refresh(void)
{
	struct iovec iov[2] = {{memory, 64}, {memory + 128, 64}}, at;
	struct fid_mr *mr;
	struct env e;

	env_open(&e, &(struct env_want){0});
	fi_mr_regv(e.domain, iov, 2, FI_REMOTE_READ, 0, 1, 0, &mr, NULL);
	tap_is_int(fi_mr_refresh(mr, NULL, 0, 0), 0, "all of it");
	tap_is_int(fi_mr_refresh(mr, iov, 2, 0), 0, "its pieces");
	at = (struct iovec){memory + 190, 2};
	tap_is_int(fi_mr_refresh(mr, &at, 1, 0), 0, "its end");
	at.iov_len = 3;
	tap_is_int(fi_mr_refresh(mr, &at, 1, 0), -FI_EINVAL, "one byte beyond");
	at = (struct iovec){memory + 60, 70};
	tap_is_int(fi_mr_refresh(mr, &at, 1, 0), -FI_EINVAL, "from one into the other");
	at = (struct iovec){memory + 8, SIZE_MAX};
	tap_is_int(fi_mr_refresh(mr, &at, 1, 0), -FI_EINVAL, "around the end of memory");
	tap_is_int(fi_mr_refresh(mr, NULL, 1, 0), -FI_EINVAL, "a piece that is none");
	tap_is_int(fi_mr_refresh(mr, NULL, 0, 1), -FI_EBADFLAGS, "flags");
	tap_is_int(find(&e, 1, 0, FI_REMOTE_READ), 0, "it stays usable");
	tap_is_int(fi_control(&mr->fid, FI_BACKLOG, NULL), -FI_ENOSYS, "other commands");
	tap_is_int(fi_control(&mr->fid, FI_REFRESH, NULL), -FI_EINVAL, "no argument");
	tap_is_int(fi_control(&mr->fid, FI_GET_RAW_MR, NULL), -FI_EINVAL, "no argument");
	fi_close(&mr->fid);
	env_close(&e);
}

static void test_odd(void)
{
	struct fi_mr_attr attr = {.mr_iov = &(struct iovec){memory, 8},
				  .iov_count = 1,
				  .access = FI_REMOTE_READ,
				  .requested_key = FI_KEY_NOTAVAIL};
	static const uint64_t keys[] = {0, 1ull << 63, FI_KEY_NOTAVAIL - 1};
	struct fid_domain *domain;
	struct fid_mr *mr;
	struct env e;

	env_open(&e, &(struct env_want){0});
	tap_is_int(fi_mr_regattr(e.domain, &attr, 0, &mr), -FI_EKEYREJECTED,
		   "a key that means none");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		attr.requested_key = keys[i];
		tap_ok(fi_mr_regattr(e.domain, &attr, 0, &mr) == 0, "key 0x%llx",
		       (unsigned long long)keys[i]);
		tap_is_int(find(&e, keys[i], 0, FI_REMOTE_READ), 0, "is found");
		fi_close(&mr->fid);
	}
	attr.auth_key_size = 4;
	attr.auth_key = (uint8_t *)memory;
	tap_is_int(fi_mr_regattr(e.domain, &attr, 0, &mr), -FI_EINVAL,
		   "an authorization key");
	tap_is_int(fi_mr_reg(e.domain, NULL, 0, FI_REMOTE_READ, 0, 1, 0, &mr, NULL), 0,
		   "no byte at all");
	tap_is_int(find(&e, 1, 0, FI_REMOTE_READ), -FI_EINVAL, "has none to read");
	fi_close(&mr->fid);
	fi_close(&e.domain->fid);
	e.info->domain_attr->mr_mode = FI_MR_BASIC | FI_MR_RAW;
	tap_is_int(fi_domain(e.fabric, e.info, &domain, NULL), -FI_EINVAL,
		   "FI_MR_BASIC with others");
	e.info->domain_attr->mr_mode = 0;
	fi_domain(e.fabric, e.info, &e.domain, NULL);
	tap_is_int(fi_control(&e.domain->fid, FI_MAP_RAW_MR, NULL), -FI_EINVAL,
		   "no argument");
	tap_is_int(fi_control(&e.domain->fid, FI_UNMAP_KEY, NULL), -FI_EINVAL,
		   "no argument");
	env_close(&e);
}

static void note_time(void *arg)
{
	*(uint64_t *)arg = wfi_now_ns();
}

static void test_rule_d3_close_waits(void)
{
	struct slow slow = {.base.quiesce = slow_quiesce, .ready_after = 20};
	uint64_t start, gave_up, ten_later = 0;
	struct fid_mr *mr, *local;
	struct later later;
	struct env e;

	env_open(&e, &(struct env_want){0});
	list_push_back(&wfi_domain_of(e.domain)->eps, &slow.base.node);
	fi_mr_reg(e.domain, memory, 8, FI_SEND, 0, 1, 0, &local, NULL);
	fi_mr_reg(e.domain, memory, 8, FI_REMOTE_WRITE, 0, 77, 0, &mr, NULL);
	fi_close(&local->fid);
	tap_is_int(slow.asked, 0, "local memory: nobody to wait for");
	tap_is_int(fi_close(&mr->fid), 0, "close");
	tap_is_int(slow.asked, 21, "when the peers are done");
	tap_is_int((int64_t)slow.key, 77, "with that key");

	fi_mr_reg(e.domain, memory, 8, FI_REMOTE_WRITE, 0, 78, 0, &mr, NULL);
	slow.asked = 0;
	slow.ready_after = 1 << 30;
	later_start(&later, 10000, note_time, &ten_later);
	start = wfi_now_ns();
	tap_is_int(fi_close(&mr->fid), -FI_EBUSY, "a peer that is stopped");
	gave_up = wfi_now_ns();
	later_join(&later);
	/* As late as a sleep beside it, on a machine that stands still meanwhile. */
	tap_ok(gave_up - start >= 10000000000ull && gave_up < ten_later + 3000000000ull,
	       "close gives up after 10 s");
	tap_is_int(find(&e, 78, 0, FI_REMOTE_WRITE), -FI_ENOKEY, "nothing new can begin");
	tap_is_int(fi_close(&e.domain->fid), -FI_EBUSY, "the region is still open");
	slow.ready_after = 0;
	tap_is_int(fi_close(&mr->fid), 0, "close again when the peer is gone");
	list_remove(&slow.base.node);
	env_close(&e);
}

/* A wire whose devices must know memory hears of it before peers may use it, and that
 * they may not any more before it is asked whether they still do. */
static void test_wire_hears(void)
{
	struct iovec iov[2] = {{memory, 64}, {memory + 128, 32}};
	struct fid_mr *mr, *local;
	struct told t;
	struct env e;

	env_open(&e, &(struct env_want){0});
	told_init(&t, &e);
	list_push_back(&wfi_domain_of(e.domain)->eps, &t.base.node);
	fi_mr_reg(e.domain, memory, 8, FI_SEND | FI_RECV, 0, 1, 0, &local, NULL);
	tap_ok(t.log[0] == '\0', "local memory: it hears nothing");
	fi_close(&local->fid);
	tap_is_int(fi_mr_regv(e.domain, iov, 2, FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL), 0,
		   "two pieces that peers may write");
	tap_ok(!strcmp(t.log, "+7 ") && !t.granted, "it hears before they may: %s",
	       t.log);
	tap_ok(t.region.iov_count == 2 && t.region.iov[1].iov_base == memory + 128 &&
		       t.region.iov[1].iov_len == 32 &&
		       t.region.access == FI_REMOTE_WRITE,
	       "all about it");
	tap_is_int(find(&e, 7, 0, FI_REMOTE_WRITE), 0, "then they may");
	tap_is_int(fi_close(&mr->fid), 0, "close");
	tap_ok(!strcmp(t.log, "+7 -7 ?7 ") && t.left,
	       "out of the table, dropped, waited for: %s", t.log);
	list_remove(&t.base.node);
	env_close(&e);
}

/* From interface 1.20 on a descriptor may come with host memory. */
static void test_dmabuf(void)
{
	int fd = memfd_create("dmabuf", MFD_CLOEXEC), before;
	struct newer_mr_dmabuf b = {
		.fd = fd, .offset = 128, .len = 64, .base_addr = memory};
	struct fi_mr_attr attr = {.mr_iov = (const void *)&b,
				  .iov_count = 1,
				  .access = FI_REMOTE_WRITE,
				  .requested_key = 9};
	struct fid_mr *mr = NULL;
	struct told t;
	struct env e;

	env_open(&e, &(struct env_want){0});
	tap_is_int(fi_mr_regattr(e.domain, &attr, FI_MR_DMABUF, &mr), -FI_EBADFLAGS,
		   "to an interface before 1.20 the flag is none");
	env_close(&e);
	env_open(&e, &(struct env_want){.api = FI_VERSION(1, 20)});
	told_init(&t, &e);
	list_push_back(&wfi_domain_of(e.domain)->eps, &t.base.node);
	before = dup(fd);
	close(before);
	tap_is_int(fi_mr_regattr(e.domain, &attr, FI_MR_DMABUF, &mr), 0,
		   "memory that a descriptor stands for");
	tap_ok(t.region.iov_count == 1 && t.region.iov[0].iov_base == memory + 128 &&
		       t.region.iov[0].iov_len == 64 && t.region.dmabuf &&
		       t.region.dmabuf->offset == 128 && t.region.dmabuf->fd != fd,
	       "wires hear of both, by a descriptor of ours");
	tap_is_int(find(&e, 9, 56, FI_REMOTE_WRITE), 0, "peers may use it");
	tap_is_int(find(&e, 9, 57, FI_REMOTE_WRITE), -FI_EINVAL, "all of it and no more");
	tap_is_int(fi_close(&mr->fid), 0, "close");
	tap_ok(dup(fd) == before && close(before) == 0, "no descriptor is left");
	t.refuse = -FI_EFAULT;
	tap_is_int(fi_mr_regattr(e.domain, &attr, FI_MR_DMABUF, &mr), -FI_EFAULT,
		   "a wire refuses");
	tap_ok(dup(fd) == before && close(before) == 0, "nor then");
	t.refuse = 0;
	b.base_addr = NULL;
	tap_is_int(fi_mr_regattr(e.domain, &attr, FI_MR_DMABUF, &mr), -FI_EINVAL,
		   "what isn't mapped is not host memory");
	b = (struct newer_mr_dmabuf){
		.fd = fd, .offset = UINT64_MAX - 63, .len = 64, .base_addr = memory};
	tap_is_int(fi_mr_regattr(e.domain, &attr, FI_MR_DMABUF, &mr), -FI_EINVAL,
		   "an offset that leads around");
	b.offset = 0;
	b.fd = before;
	tap_is_int(fi_mr_regattr(e.domain, &attr, FI_MR_DMABUF, &mr), -FI_EINVAL,
		   "no descriptor");
	list_remove(&t.base.node);
	env_close(&e);
	close(fd);
}

static void test_wire_refuses(void)
{
	struct told a, b, c;
	struct fid_mr *mr;
	struct env e;

	env_open(&e, &(struct env_want){0});
	told_init(&a, &e);
	told_init(&b, &e);
	told_init(&c, &e);
	list_push_back(&wfi_domain_of(e.domain)->eps, &a.base.node);
	list_push_back(&wfi_domain_of(e.domain)->eps, &b.base.node);
	b.refuse = -FI_ENOMEM;
	tap_is_int(fi_mr_reg(e.domain, memory, 8, FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL),
		   -FI_ENOMEM, "the second wire can't have it: no registration");
	tap_ok(!strcmp(a.log, "+7 -7 ") && !strcmp(b.log, "+7 "),
	       "the first one forgets it: %s", a.log);
	tap_is_int(find(&e, 7, 0, FI_REMOTE_WRITE), -FI_ENOKEY, "the key is free");
	b.refuse = 0;
	fi_mr_reg(e.domain, memory, 8, FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL);
	tap_is_int(wfi_mr_introduce(wfi_domain_of(e.domain), &c.base), 0,
		   "an endpoint that comes later");
	tap_ok(!strcmp(c.log, "+7 "), "hears of what is there: %s", c.log);
	c.refuse = -FI_EFAULT;
	tap_is_int(wfi_mr_introduce(wfi_domain_of(e.domain), &c.base), -FI_EFAULT,
		   "or can't be opened");
	fi_close(&mr->fid);
	list_remove(&a.base.node);
	list_remove(&b.base.node);
	env_close(&e);
}

static void test_wire_and_enable(void)
{
	struct fi_mr_modify modify = {0};
	struct fid_mr *mr;
	struct fid_ep *ep;
	struct told t;
	struct env e;

	env_open_as(&e, FI_MR_ENDPOINT);
	ep = ep_new(&e);
	told_init(&t, &e);
	list_push_back(&wfi_domain_of(e.domain)->eps, &t.base.node);
	fi_mr_reg(e.domain, memory, 64, FI_REMOTE_WRITE, 0, 5, 0, &mr, NULL);
	fi_mr_bind(mr, &ep->fid, 0);
	tap_ok(t.log[0] == '\0', "a region that isn't enabled: it hears nothing");
	t.refuse = -FI_ENOMEM;
	tap_is_int(fi_mr_enable(mr), -FI_ENOMEM, "it can't have it");
	tap_is_int(find(&e, 5, 0, FI_REMOTE_WRITE), -FI_EACCES, "so it isn't enabled");
	t.refuse = 0;
	tap_is_int(fi_mr_enable(mr), 0, "enabled later");
	tap_is_int(find(&e, 5, 0, FI_REMOTE_WRITE), 0, "and usable");
	t.log[0] = '\0';
	tap_is_int(fi_control(&mr->fid, FI_REFRESH, &modify), 0, "refreshed");
	tap_ok(!strcmp(t.log, "-5 +5 "), "it is told again: %s", t.log);
	fi_close(&mr->fid);
	fi_mr_reg(e.domain, memory, 64, FI_REMOTE_WRITE, 0, 6, 0, &mr, NULL);
	t.log[0] = '\0';
	fi_close(&mr->fid);
	tap_ok(!strchr(t.log, '-'), "never enabled: nothing to drop: %s", t.log);
	list_remove(&t.base.node);
	fi_close(&ep->fid);
	env_close(&e);
}

/* Peers learn of counters with the key. */
static void test_wire_and_counter(void)
{
	struct fi_cntr_attr attr = {0};
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	struct told t;
	struct env e;

	env_open(&e, &(struct env_want){0});
	told_init(&t, &e);
	tap_ok(mem_keytab_wanted(wfi_domain_of(e.domain)->keys) ==
		       (e.info->caps & FI_RMA_EVENT ? MEM_EVENTS_EP : 0),
	       "whether endpoints count is known when the domain opens");
	fi_cntr_open(e.domain, &attr, &cntr, NULL);
	fi_mr_reg(e.domain, memory, 64, FI_REMOTE_WRITE, 0, 5, 0, &mr, NULL);
	wfi_mr_introduce(wfi_domain_of(e.domain), &t.base);
	t.log[0] = '\0';
	t.wanted = &wfi_domain_of(e.domain)->keys;
	list_push_back(&wfi_domain_of(e.domain)->eps, &t.base.node);
	t.base.pollable = &(struct wfi_pollable){.ops = NULL};
	tap_is_int(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0, "a counter later");
	tap_ok(!strcmp(t.log, "-5 +5 ") && (t.events & MEM_EVENTS_MR),
	       "the key is told again, with it: %s", t.log);
	fi_close(&mr->fid);
	list_remove(&t.base.node);
	fi_close(&cntr->fid);
	env_close(&e);
}

int main(void)
{
	test_user_keys();
	test_modes();
	test_bind();
	test_endpoint_mode();
	test_rma_event_mode();
	test_raw_keys();
	test_refresh();
	test_odd();
	test_wire_hears();
	test_dmabuf();
	test_wire_refuses();
	test_wire_and_enable();
	test_wire_and_counter();
	test_rule_d3_close_waits();
	return tap_done();
}
