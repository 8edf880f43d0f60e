/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads: each with a pair of its own, two that share a completion queue, and one that
 * registers and gives back all the time. Nothing is written after its key was given back.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>

#include "fabtests/emuverbs/tests/pair.h"
#include "util/tap.h"

#define PAIRS 3u

static atomic_bool over;
static atomic_uint wrong;

static unsigned rounds(void)
{
	return tap_short() ? 100 : 400;
}

static void *pair_thread(void *arg)
{
	struct end_wish wish = {0};
	struct end x, y;
	unsigned seed = (unsigned)(uintptr_t)arg;

	end_open(&x, &wish);
	end_open(&y, &wish);
	end_join(&x, &y);
	for (unsigned i = 0; i < rounds(); i++) {
		size_t len = 1 + (i * 7919 + seed) % 100000;
		struct ibv_wc wc;

		memset(x.bytes, (int)(i + seed), len);
		end_receive(&y, 1, 0, END_BYTES);
		end_send(&x, 2, 0, len);
		if (!end_poll(&x, &wc) || wc.status || !end_poll(&y, &wc) || wc.status ||
		    wc.byte_len != len || y.bytes[len - 1] != (uint8_t)(i + seed))
			atomic_fetch_add(&wrong, 1);
		end_write(&y, &x, 3, 0, len, 500000);
		if (!end_poll(&y, &wc) || wc.status ||
		    x.bytes[500000 + len - 1] != (uint8_t)(i + seed))
			atomic_fetch_add(&wrong, 1);
	}
	end_close(&x);
	end_close(&y);
	return NULL;
}

struct shared {
	struct end x, y;
	atomic_uint seen;
};

static void *poll_thread(void *arg)
{
	struct shared *s = arg;
	struct ibv_wc wc;

	while (!atomic_load(&over))
		if (ibv_poll_cq(s->x.cq, 1, &wc) == 1) {
			atomic_fetch_add(&s->seen, 1);
			if (wc.status != IBV_WC_SUCCESS)
				atomic_fetch_add(&wrong, 1);
		}
	return NULL;
}

/* Whoever still has the key is refused; the memory stays as it was. */
static void *key_thread(void *arg)
{
	struct end_wish wish = {0};
	struct end x, y;
	unsigned *refused = arg;

	end_open(&x, &wish);
	end_open(&y, &wish);
	for (unsigned i = 0; i < rounds() / 4; i++) {
		struct ibv_mr stale = *y.mr;
		struct end far = y;
		struct ibv_wc wc;

		end_join(&x, &y);
		far.mr = &stale;
		memset(x.bytes, 1, END_BYTES);
		end_write(&x, &far, 1, 0, END_BYTES, 0);
		ibv_dereg_mr(y.mr);
		memset(y.bytes, 2, END_BYTES);
		if (!end_poll(&x, &wc))
			atomic_fetch_add(&wrong, 1);
		*refused += wc.status == IBV_WC_REM_ACCESS_ERR;
		for (size_t k = 0; k < END_BYTES; k += 1000)
			if (y.bytes[k] != 2)
				atomic_fetch_add(&wrong, 1);
		y.mr = ibv_reg_mr(y.pd, y.bytes, END_BYTES, END_ALL);
		if (!y.mr)
			tap_bail("no registration");
		end_state(&x, IBV_QPS_RESET);
		end_state(&y, IBV_QPS_RESET);
	}
	end_close(&x);
	end_close(&y);
	return NULL;
}

static void start(pthread_t *t, void *(*f)(void *), void *arg)
{
	if (pthread_create(t, NULL, f, arg) != 0)
		tap_bail("no thread");
}

int main(void)
{
	struct end_wish usual = {0};
	static struct shared s;
	unsigned refused = 0, posted = 0;
	pthread_t pairs[PAIRS], polls[2], key;

	net_begin("emuverbs 1\ndevice emu0 gid=10.0.0.1\n");
	end_open(&s.x, &usual);
	end_open(&s.y, &usual);
	end_join(&s.x, &s.y);
	for (unsigned i = 0; i < PAIRS; i++)
		start(&pairs[i], pair_thread, (void *)(uintptr_t)(i * 31));
	start(&polls[0], poll_thread, &s);
	start(&polls[1], poll_thread, &s);
	start(&key, key_thread, &refused);
	while (posted < rounds() * 4)
		if (end_write(&s.x, &s.y, posted, 0, 8, 0) == 0)
			posted++;
	for (unsigned i = 0; i < PAIRS; i++)
		pthread_join(pairs[i], NULL);
	pthread_join(key, NULL);
	while (atomic_load(&s.seen) < posted)
		;
	atomic_store(&over, true);
	pthread_join(polls[0], NULL);
	pthread_join(polls[1], NULL);
	tap_is_int(atomic_load(&wrong), 0, "all is as it should be, by many threads");
	tap_is_int(atomic_load(&s.seen), posted, "each completion is seen once");
	tap_diag("%u of %u writes met a key that was given back", refused, rounds() / 4);
	end_close(&s.x);
	end_close(&s.y);
	return tap_done();
}
