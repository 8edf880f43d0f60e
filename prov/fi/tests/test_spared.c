/* SPDX-License-Identifier: BSD-2-Clause */
/* The data path takes no lock where the threading level spares it: the functions that
 * lock are replaced by ones that count. */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "prov/fi/tests/end.h"
#include "util/tap.h"

#define ROUNDS 1000

/* Of this thread: the wire's helper has a lock of its own. */
static _Thread_local long locks;

static int call_next(const char *name, pthread_mutex_t *m)
{
	int (*next)(pthread_mutex_t *) =
		(int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, name);

	locks++;
	return next(m);
}

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *m)
{
	return call_next("pthread_mutex_lock", m);
}

__attribute__((visibility("default"))) int pthread_mutex_trylock(pthread_mutex_t *m)
{
	return call_next("pthread_mutex_trylock", m);
}

__attribute__((visibility("default"))) int pthread_mutex_unlock(pthread_mutex_t *m)
{
	return call_next("pthread_mutex_unlock", m);
}

static bool await(struct end *e, struct end *other)
{
	struct fi_cq_tagged_entry entry;

	for (int i = 0; i < 10000000; i++) {
		if (fi_cq_read(e->cq, &entry, 1) == 1)
			return true;
		fi_cq_read(other->cq, &entry, 0);
	}
	return false;
}

/* Messages of each way of posting them, back and forth. */
static bool exchange(struct end *a, struct end *b, fi_addr_t to, size_t len)
{
	static char out[8192], in[8192];
	struct fi_cq_tagged_entry entry;

	if (fi_trecv(b->ep, in, len, NULL, FI_ADDR_UNSPEC, 1, 0, NULL) ||
	    fi_tsend(a->ep, out, len, NULL, to, 1, NULL) || !await(a, b) || !await(b, a))
		return false;
	if (fi_trecv(b->ep, in, len, NULL, FI_ADDR_UNSPEC, 1, 0, NULL) ||
	    fi_tsenddata(a->ep, out, len, NULL, 7, to, 1, NULL) || !await(a, b) ||
	    !await(b, a))
		return false;
	if (fi_recv(b->ep, in, len, NULL, FI_ADDR_UNSPEC, NULL) ||
	    fi_send(a->ep, out, len, NULL, to, NULL) || !await(a, b) || !await(b, a))
		return false;
	if (fi_trecv(b->ep, in, len, NULL, FI_ADDR_UNSPEC, 0, ~0ULL, NULL) ||
	    fi_tinjectdata(a->ep, out, 8, 7, to, 3) || !await(b, a))
		return false;
	/* One read that finds nothing. */
	return fi_cq_read(a->cq, &entry, 1) == -FI_EAGAIN;
}

static long count(enum fi_threading threading)
{
	fi_addr_t to[2];
	struct end e[2];
	bool good = true;
	long before;

	for (int i = 0; i < 2; i++)
		end_open(&e[i], threading);
	for (int i = 0; i < 2; i++)
		to[i] = end_join(&e[i], &e[1 - i]);
	for (int i = 0; i < 50; i++)
		good &= exchange(&e[i % 2], &e[1 - i % 2], to[i % 2], 8);
	before = locks;
	for (int i = 0; i < ROUNDS; i++)
		good &= exchange(&e[i % 2], &e[1 - i % 2], to[i % 2], i % 10 ? 8 : 4000);
	before = locks - before;
	tap_ok(good, "messages came");
	for (int i = 0; i < 2; i++)
		end_close(&e[i]);
	return before;
}

int main(void)
{
	long n = count(FI_THREAD_SAFE);

	/* Lock and unlock for each of the 15 calls of a round at least. */
	tap_ok(n >= ROUNDS * 30L, "FI_THREAD_SAFE: %ld calls to lock or unlock", n);
	tap_is_int(count(FI_THREAD_DOMAIN), 0, "FI_THREAD_DOMAIN: none");
	return tap_done();
}
