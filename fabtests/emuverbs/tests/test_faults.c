/* SPDX-License-Identifier: BSD-2-Clause */
/* The script of faults: each by what both ends see of it. A device for each. */
#include "config.h"

#include <time.h>
#include <unistd.h>

#include "fabtests/emuverbs/tests/pair.h"
#include "util/tap.h"

static const char config[] = "emuverbs 1\n"
			     "device lose gid=10.0.0.1\n"
			     "device ack gid=10.0.0.2\n"
			     "device word gid=10.0.0.3\n"
			     "device deny gid=10.0.0.4\n"
			     "device kill gid=10.0.0.5\n"
			     "device stall gid=10.0.0.6\n"
			     "device port gid=10.0.0.7\n"
			     "device fatal gid=10.0.0.8\n"
			     "device clock gid=10.0.0.9\n"
			     "device other gid=10.0.0.10\n"
			     "device dark gid=10.0.0.11 state=down\n"
			     "device send gid=10.0.0.12\n"
			     "device route gid=10.0.0.13\n"
			     "device mute gid=10.0.0.14\n"
			     "fault lose 2 lose-segment\n"
			     "fault ack 2 lose-ack\n"
			     "fault word 2 lose-immediate\n"
			     "fault deny 2 deny\n"
			     "fault kill each=2 kill-qp\n"
			     "fault stall 1 stall-qp for=3\n"
			     "fault port 2 port-down for=50ms\n"
			     "fault fatal 2 device-fatal\n"
			     "fault clock every=20ms kill-qp\n"
			     "fault other 2 kill-qp host=2\n"
			     "fault send 1 lose-immediate\n"
			     "fault route 2 lose-route\n"
			     "fault mute 1 port-down for=50ms lost=down\n";

enum {
	LOSE,
	ACK,
	WORD,
	DENY,
	KILL,
	STALL,
	PORT,
	FATAL,
	CLOCK,
	OTHER,
	DARK,
	SEND,
	ROUTE,
	MUTE
};

static void pair_open(struct end *x, struct end *y, unsigned device)
{
	struct end_wish wish = {.device = device};

	end_open(x, &wish);
	end_open(y, &wish);
	end_join(x, y);
	for (unsigned i = 0; i < 4; i++)
		end_receive(y, 100 + i, 900000, 8);
	memset(x->bytes, 0x5a, 1000);
}

static void pair_close(struct end *x, struct end *y)
{
	end_close(x);
	end_close(y);
}

static bool wc_is(struct end *e, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = {0};
	bool good = end_poll(e, &wc) && wc.wr_id == id && wc.status == status;

	if (!good)
		tap_diag("id %d, %s; expected %d, %s", (int)wc.wr_id,
			 ibv_wc_status_str(wc.status), (int)id,
			 ibv_wc_status_str(status));
	return good;
}

/* Four writes with words, of which the third suffers. What the sender hears of it, and
 * how many words and which bytes arrive. */
static void segment(const char *what, unsigned device, enum ibv_wc_status status,
		    unsigned words, bool bytes)
{
	struct end x, y;
	bool good;

	pair_open(&x, &y, device);
	for (unsigned i = 0; i < 4; i++) {
		memset(x.bytes, (int)i + 1, 8);
		end_write_imm(&x, &y, i, 8, i);
		if (i < 2)
			tap_ok(wc_is(&x, i, IBV_WC_SUCCESS), "%s: before it", what);
	}
	tap_ok(wc_is(&x, 2, status) && wc_is(&x, 3, IBV_WC_WR_FLUSH_ERR),
	       "%s: the sender hears of it", what);
	good = true;
	for (unsigned i = 0; i < words; i++)
		good = wc_is(&y, 100 + i, IBV_WC_SUCCESS) && good;
	tap_ok(good, "%s: %u words arrive", what, words);
	tap_is_int(y.bytes[0], bytes ? 3 : 2, "... and these bytes");
	pair_close(&x, &y);
}

static void test_kill(void)
{
	struct end x, y;

	pair_open(&x, &y, KILL);
	for (unsigned round = 0; round < 2; round++) {
		end_write(&x, &y, 1, 0, 8, 0);
		if (round == 0) {
			tap_ok(wc_is(&x, 1, IBV_WC_SUCCESS), "one passes");
			end_write(&x, &y, 2, 0, 8, 0);
			tap_ok(wc_is(&x, 2, IBV_WC_SUCCESS), "and the second");
			end_write(&x, &y, 1, 0, 8, 0);
		}
		tap_ok(wc_is(&x, 1, IBV_WC_WR_FLUSH_ERR) &&
			       end_event(&x) == IBV_EVENT_QP_FATAL,
		       "the next ends the queue pair");
		end_state(&x, IBV_QPS_RESET);
		end_state(&y, IBV_QPS_RESET);
		end_join(&x, &y);
		end_write(&x, &y, 3, 0, 8, 0);
		tap_ok(wc_is(&x, 3, IBV_WC_SUCCESS), "it may be made anew");
	}
	pair_close(&x, &y);
}

static void test_stall(void)
{
	struct end_wish wish = {.device = STALL};
	struct end x, y, z;

	pair_open(&x, &y, STALL);
	end_open(&z, &wish);
	end_init(&z);
	end_rtr(&z, &y, 1);
	end_write(&x, &y, 1, 0, 8, 0);
	tap_ok(wc_is(&x, 1, IBV_WC_SUCCESS), "one passes");
	end_write(&x, &y, 2, 0, 8, 0);
	tap_ok(ibv_poll_cq(x.cq, 1, &(struct ibv_wc){0}) == 0, "the next waits");
	end_write(&x, &y, 3, 0, 8, 0);
	end_write(&x, &y, 4, 0, 8, 0);
	end_write(&x, &y, 5, 0, 8, 0);
	tap_ok(wc_is(&x, 2, IBV_WC_SUCCESS) && wc_is(&x, 3, IBV_WC_SUCCESS) &&
		       wc_is(&x, 4, IBV_WC_SUCCESS) && wc_is(&x, 5, IBV_WC_SUCCESS),
	       "until others were posted");
	end_close(&z);
	pair_close(&x, &y);
}

static enum ibv_port_state port_state(struct end *e)
{
	struct ibv_port_attr attr;

	return ibv_query_port(e->context, 1, &attr) == 0 ? attr.state : IBV_PORT_NOP;
}

static void test_port(void)
{
	struct end x, y;

	pair_open(&x, &y, PORT);
	end_write(&x, &y, 1, 0, 8, 0);
	end_write(&x, &y, 2, 0, 8, 0);
	tap_ok(wc_is(&x, 1, IBV_WC_SUCCESS) && wc_is(&x, 2, IBV_WC_SUCCESS), "two pass");
	end_write(&x, &y, 3, 0, 8, 0);
	tap_ok(wc_is(&x, 3, IBV_WC_RETRY_EXC_ERR), "a port goes down: retries exceeded");
	tap_ok(wc_is(&y, 100, IBV_WC_WR_FLUSH_ERR), "receives are flushed");
	tap_is_int(end_event(&x), IBV_EVENT_PORT_ERR, "the event of it");
	tap_is_int(end_event(&x), IBV_EVENT_PORT_ACTIVE, "and of its return");
	tap_is_int(port_state(&x), IBV_PORT_ACTIVE, "as the port itself says");
	end_state(&x, IBV_QPS_RESET);
	end_state(&y, IBV_QPS_RESET);
	end_join(&x, &y);
	end_write(&x, &y, 4, 0, 8, 0);
	tap_ok(wc_is(&x, 4, IBV_WC_SUCCESS), "then it works again");
	pair_close(&x, &y);
}

static void test_mute(void)
{
	struct end x, y;

	pair_open(&x, &y, MUTE);
	end_write(&x, &y, 1, 0, 8, 0);
	tap_ok(wc_is(&x, 1, IBV_WC_SUCCESS), "one passes");
	end_write(&x, &y, 2, 0, 8, 0);
	tap_ok(wc_is(&x, 2, IBV_WC_RETRY_EXC_ERR), "a port goes, and no event says so");
	tap_is_int(end_event(&x), IBV_EVENT_PORT_ACTIVE, "the first is of its return");
	pair_close(&x, &y);
}

static void test_dark(void)
{
	struct end x, y;

	pair_open(&x, &y, DARK);
	tap_is_int(port_state(&x), IBV_PORT_DOWN, "a port that is down to begin with");
	end_write(&x, &y, 1, 0, 8, 0);
	tap_ok(wc_is(&x, 1, IBV_WC_RETRY_EXC_ERR), "carries nothing");
	pair_close(&x, &y);
}

static void test_fatal(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct end x, y;

	pair_open(&x, &y, FATAL);
	end_write(&x, &y, 1, 0, 8, 0);
	end_write(&x, &y, 2, 0, 8, 0);
	tap_ok(wc_is(&x, 1, IBV_WC_SUCCESS) && wc_is(&x, 2, IBV_WC_SUCCESS), "two pass");
	end_write(&x, &y, 3, 0, 8, 0);
	tap_ok(wc_is(&x, 3, IBV_WC_WR_FLUSH_ERR) &&
		       end_event(&x) == IBV_EVENT_DEVICE_FATAL,
	       "a device that ends");
	tap_ok(!ibv_open_device(list[FATAL]), "it can't be opened any more");
	ibv_free_device_list(list);
	pair_close(&x, &y);
}

static void test_clock(void)
{
	struct end x, y;
	time_t end = time(NULL) + 20;
	unsigned killed = 0, wrong = 0;

	pair_open(&x, &y, CLOCK);
	while (killed < 3 && time(NULL) < end) {
		struct ibv_wc wc;

		end_write(&x, &y, 1, 0, 8, 0);
		if (!end_poll(&x, &wc) || wc.status == IBV_WC_SUCCESS)
			continue;
		killed++;
		wrong += wc.status != IBV_WC_WR_FLUSH_ERR &&
			 wc.status != IBV_WC_RETRY_EXC_ERR;
		end_state(&x, IBV_QPS_RESET);
		end_state(&y, IBV_QPS_RESET);
		end_join(&x, &y);
	}
	tap_ok(killed == 3 && wrong == 0, "a queue pair ends every 20 ms");
	pair_close(&x, &y);
}

static void test_send(void)
{
	struct end x, y;

	pair_open(&x, &y, SEND);
	end_send(&x, 1, 0, 8);
	tap_ok(wc_is(&x, 1, IBV_WC_SUCCESS) && wc_is(&y, 100, IBV_WC_SUCCESS),
	       "a send passes");
	end_send(&x, 2, 0, 8);
	tap_ok(wc_is(&x, 2, IBV_WC_RETRY_EXC_ERR) && end_quiet(&y),
	       "of a send that nobody hears of nothing arrives");
	pair_close(&x, &y);
}

static void test_other(void)
{
	struct end x, y;
	unsigned good = 0;

	pair_open(&x, &y, OTHER);
	for (unsigned i = 0; i < 5; i++) {
		end_write(&x, &y, i, 0, 8, 0);
		good += wc_is(&x, i, IBV_WC_SUCCESS);
	}
	tap_is_int(good, 5, "another process's fault");
	pair_close(&x, &y);
}

int main(void)
{
	net_begin(config);
	segment("lose-segment", LOSE, IBV_WC_RETRY_EXC_ERR, 2, false);
	segment("lose-ack", ACK, IBV_WC_RETRY_EXC_ERR, 3, true);
	segment("lose-immediate", WORD, IBV_WC_RETRY_EXC_ERR, 2, true);
	segment("lose-route", ROUTE, IBV_WC_LOC_QP_OP_ERR, 2, false);
	segment("deny", DENY, IBV_WC_REM_ACCESS_ERR, 2, false);
	test_kill();
	test_stall();
	test_port();
	test_mute();
	test_dark();
	test_fatal();
	test_clock();
	test_other();
	test_send();
	return tap_done();
}
