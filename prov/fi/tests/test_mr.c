/* SPDX-License-Identifier: BSD-2-Clause */
/* Registration: keys, access, modes; closing waits for peers (rule D3). */
#include "config.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "prov/fi/tests/fi_test.h"
#include "prov/fi/wait.h"
#include "prov/mem/keytab.h"
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

static void test_bind(void)
{
	struct fi_mr_attr attr = {.mr_iov = &(struct iovec){memory, 8}, .iov_count = 1};
	struct fi_cntr_attr cntr_attr = {0};
	struct fid fake_ep = {.fclass = FI_CLASS_EP};
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	struct env e;

	env_open(&e, &(struct env_want){0});
	tap_is_int(fi_mr_regattr(e.domain, &attr, 0, &mr), 0, "regattr");
	tap_is_int(fi_mr_bind(mr, &fake_ep, 0), 0, "binding an endpoint does no harm");
	tap_is_int(fi_mr_enable(mr), 0, "nor does enabling");
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

static void test_rule_d3_close_waits(void)
{
	struct slow slow = {.base.quiesce = slow_quiesce, .ready_after = 20};
	struct fid_mr *mr, *local;
	uint64_t start;
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
	start = wfi_now_ns();
	tap_is_int(fi_close(&mr->fid), -FI_EBUSY, "a peer that is stopped");
	tap_ok(wfi_now_ns() - start < 13000000000ull, "close gives up after 10 s");
	tap_is_int(find(&e, 78, 0, FI_REMOTE_WRITE), -FI_ENOKEY, "nothing new can begin");
	tap_is_int(fi_close(&e.domain->fid), -FI_EBUSY, "the region is still open");
	slow.ready_after = 0;
	tap_is_int(fi_close(&mr->fid), 0, "close again when the peer is gone");
	list_remove(&slow.base.node);
	env_close(&e);
}

int main(void)
{
	test_user_keys();
	test_modes();
	test_bind();
	test_rule_d3_close_waits();
	return tap_done();
}
