/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers of one packet each. */
#include "config.h"

#include "prov/wire/verbs/verbs_bufs.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <rdma/fi_errno.h>

#define CHUNK_BYTES (VERBS_BUF_CHUNK * sizeof(struct verbs_buf))

_Static_assert(sizeof(struct verbs_buf) == VERBS_BUF_SIZE + 64, "verbs_buf");

int verbs_bufs_init(struct verbs_bufs *bufs, struct verbs_dom *dom)
{
	bufs->dom = dom;
	bufs->mr = calloc(VERBS_BUF_CHUNKS, sizeof(struct verbs_mr *));
	bufs->chunk = calloc(VERBS_BUF_CHUNKS, sizeof(*bufs->chunk));
	return bufs->mr && bufs->chunk ? 0 : -FI_ENOMEM;
}

void verbs_bufs_fini(struct verbs_bufs *bufs)
{
	for (uint32_t i = 0; i < bufs->chunks; i++) {
		verbs_mr_drop(bufs->dom, bufs->mr[i]);
		munmap(atomic_load_explicit(&bufs->chunk[i], memory_order_relaxed),
		       CHUNK_BYTES);
	}
	free(bufs->mr);
	free(bufs->chunk);
}

int verbs_bufs_grow(struct verbs_bufs *bufs)
{
	uint32_t c = bufs->chunks;
	struct verbs_buf *b;
	int ret;

	if (c == VERBS_BUF_CHUNKS)
		return -FI_ENOMEM;
	b = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		 -1, 0);
	if (b == MAP_FAILED)
		return -FI_ENOMEM;
	ret = verbs_mr_add(bufs->dom, b, CHUNK_BYTES, IBV_ACCESS_LOCAL_WRITE, 0,
			   &bufs->mr[c]);
	if (ret) {
		munmap(b, CHUNK_BYTES);
		return -FI_ENOMEM;
	}
	for (uint32_t i = VERBS_BUF_CHUNK; i-- > 0;) {
		b[i].lkey = bufs->mr[c]->lkey;
		b[i].index = c * VERBS_BUF_CHUNK + i;
		verbs_buf_put(bufs, &b[i]);
	}
	atomic_store_explicit(&bufs->chunk[c], b, memory_order_release);
	bufs->chunks = c + 1;
	return 0;
}
