/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoint that records its events, and the server process. */
#include "config.h"

#include "prov/wire/verbs/tests/rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs.h"
#include "util/tap.h"
#include "util/tap_fork.h"

uint64_t rig_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t hash_bytes(const void *bytes, size_t len)
{
	const uint8_t *b = bytes;
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ b[i]) * 1099511628211u;
	return h;
}

static void on_up(void *arg, struct wire_link *link)
{
	struct rig *rig = arg;

	rig->ups++;
	if (rig->on_up && rig->on_up(rig, link))
		return;
	if (wire_link_base(link)->peer_ctx)
		rig->dialled = link;
	else
		rig->accepted = link;
}

static void on_down(void *arg, struct wire_link *link, int err)
{
	struct rig *rig = arg;

	rig->downs++;
	rig->down_err = err;
	if (rig->dialled == link)
		rig->dialled = NULL;
	if (rig->accepted == link)
		rig->accepted = NULL;
}

static void on_packet(void *arg, struct wire_link *link, const void *pkt, size_t len)
{
	struct rig *rig = arg;

	rig->packets++;
	if (rig->on_packet && rig->on_packet(rig, link, pkt, len))
		return;
	rig->last_len = len;
	memcpy(rig->last, pkt, len);
}

static void on_segment(void *arg, struct wire_link *link, void *cookie, int err)
{
	struct rig *rig = arg;

	(void)link;
	(void)cookie;
	rig->segments++;
	rig->segment_err = err;
	rig->segment_errs += err != 0;
}

static void on_put(void *arg, struct wire_link *link, void *cookie)
{
	on_segment(arg, link, cookie, 0);
}

static void on_arrived(void *arg, struct wire_link *link, const struct wire_notice *n,
		       uint64_t len)
{
	struct rig *rig = arg;

	(void)link;
	rig->arrived++;
	rig->arrived_len += len;
	rig->arrived_sum += n->data;
	rig->arrived_late += n->data != rig->arrived_last + 1;
	rig->arrived_last = n->data;
}

static void on_atomic(void *arg, struct wire_link *link, uint64_t cookie, uint64_t was,
		      int err)
{
	struct rig *rig = arg;

	(void)link;
	if (rig->on_atomic)
		rig->on_atomic(rig, cookie, was, err);
}

static const struct wire_events rig_events = {.link_up = on_up,
					      .link_down = on_down,
					      .packet = on_packet,
					      .segment_done = on_segment,
					      .put_over = on_put,
					      .atomic_done = on_atomic,
					      .arrived = on_arrived};

static void open_with(struct rig *rig, struct mem_keytab *keys)
{
	static bool read_params;
	struct wire_ep_attr attr = {.events = &rig_events, .arg = rig, .keys = keys};
	int ret;

	if (!read_params)
		prov_params_init(); /* FI_WEFT_LANES and the like */
	read_params = true;
	rig->keys = keys;
	attr.addr.in.sin_family = AF_INET;
	attr.addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (getrandom(&attr.incarnation, sizeof(attr.incarnation), 0) < 0)
		tap_bail("no random numbers");
	attr.incarnation |= 1;
	ret = verbs_wire_ops.ep_open(&attr, &rig->ep);
	if (ret)
		tap_bail("endpoint: %s", fi_strerror(-ret));
}

void rig_open(struct rig *rig)
{
	struct mem_keytab *keys;
	int ret = mem_keytab_open(1024, &keys);

	if (ret)
		tap_bail("key table: %d", ret);
	memset(rig, 0, sizeof(*rig));
	open_with(rig, keys);
}

void rig_open_beside(struct rig *rig, const struct rig *other)
{
	memset(rig, 0, sizeof(*rig));
	rig->beside = true;
	open_with(rig, other->keys);
}

void rig_close(struct rig *rig)
{
	for (unsigned i = 0; i < rig->handle_count; i++)
		verbs_wire_ops.mem_drop(rig->ep, rig->handles[i]);
	verbs_wire_ops.ep_close(rig->ep);
	if (!rig->beside)
		mem_keytab_close(rig->keys);
}

#define SLEEP_MS 3000

void rig_step(struct rig *rig)
{
	struct pollfd p = {.fd = verbs_wire_ops.fd(rig->ep), .events = POLLIN};
	uint64_t due;
	int ms = SLEEP_MS;

	if (verbs_wire_ops.progress(rig->ep, 64) > 0)
		return;
	if (!rig->sleeps) {
		sched_yield();
		return;
	}
	if (verbs_wire_ops.arm(rig->ep) != 0)
		return;
	due = verbs_wire_ops.look_due(rig->ep);
	if (due != UINT64_MAX) {
		uint64_t now = rig_now();

		ms = due <= now ? 0 : (int)((due - now) / 1000000) + 1;
		ms = ms < SLEEP_MS ? ms : SLEEP_MS;
	}
	if (poll(&p, 1, ms) == 0 && ms == SLEEP_MS)
		rig->overslept++;
}

bool rig_wait_int(struct rig *rig, const int *counter, int want)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);

	while (*counter < want) {
		rig_step(rig);
		if (rig_now() > end)
			return false;
	}
	return true;
}

bool rig_wait_u64(struct rig *rig, const uint64_t *counter, uint64_t want)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);

	while (*counter < want) {
		rig_step(rig);
		if (rig_now() > end)
			return false;
	}
	return true;
}

int rig_dial(struct rig *rig, const struct wire_addr *to)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);
	struct wire_link *link;
	int downs = rig->downs;
	int ret;

	rig->dialled = NULL;
	ret = verbs_wire_ops.dial(rig->ep, to, rig, &link);
	if (ret)
		return ret;
	while (!rig->dialled && rig->downs == downs) {
		rig_step(rig);
		if (rig_now() > end)
			return -FI_ETIMEDOUT;
	}
	return rig->dialled ? 0 : rig->down_err;
}

bool rig_send(struct rig *rig, struct wire_link *link, const void *bytes, size_t len)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);
	int downs = rig->downs;
	void *pkt;

	while (!(pkt = verbs_wire_ops.pkt_reserve(link, len, WIRE_DATA))) {
		rig_step(rig);
		if (rig_now() > end || rig->downs > downs)
			return false;
	}
	memcpy(pkt, bytes, len);
	verbs_wire_ops.pkt_commit(link, pkt, len);
	return true;
}

/* ---- memory -------------------------------------------------------------------------
 */

void *rig_memory(struct rig *rig, size_t len, void **handle)
{
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	int ret;

	if (mem == MAP_FAILED)
		tap_bail("no memory");
	ret = verbs_wire_ops.mem_add(rig->ep, mem, len, handle);
	if (ret)
		tap_bail("mem_add: %s", fi_strerror(-ret));
	rig->handles[rig->handle_count++ % 64] = *handle;
	return mem;
}

int rig_register(struct rig *rig, void *memory, size_t len, uint64_t access,
		 uint64_t *key)
{
	struct mem_region region = {.iov_count = 1, .access = access, .virt_addr = true};
	int ret;

	region.iov[0].iov_base = memory;
	region.iov[0].iov_len = len;
	ret = mem_keytab_insert(rig->keys, &region, key);
	if (ret)
		return ret;
	ret = verbs_wire_ops.key_add(rig->ep, *key, &region);
	if (ret)
		mem_keytab_remove(rig->keys, *key);
	return ret;
}

void rig_unregister(struct rig *rig, uint64_t key)
{
	mem_keytab_remove(rig->keys, key);
	verbs_wire_ops.key_drop(rig->ep, key);
	verbs_wire_ops.quiesce(rig->ep, key, rig_now() + UINT64_C(1000000000));
}

int rig_start(struct rig *rig, struct wire_link *link, bool write, void *local,
	      void *handle, size_t len, uint64_t addr, uint64_t key,
	      const struct wire_notice *n)
{
	struct iovec iov = {.iov_base = local, .iov_len = len};
	struct wire_segment seg = {.local = &iov,
				   .handles = &handle,
				   .local_count = len ? 1 : 0,
				   .remote = {.addr = addr, .key = key},
				   .len = len,
				   .cookie = rig};
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);
	int downs = rig->downs;
	int ret;

	if (write && !n && len && len <= wire_link_base(link)->caps.inlined &&
	    (rig->soon_next = !rig->soon_next) &&
	    verbs_wire_ops.put_soon(link, key, addr, local, len, rig)) {
		rig->soon++;
		return 0;
	}
	do {
		ret = n	      ? verbs_wire_ops.put_notify(link, &seg, n)
		      : write ? verbs_wire_ops.put(link, &seg)
			      : verbs_wire_ops.get(link, &seg);
		if (ret == -FI_EAGAIN)
			rig_step(rig);
	} while (ret == -FI_EAGAIN && rig->downs == downs && rig_now() < end);
	return ret;
}

int rig_move(struct rig *rig, struct wire_link *link, bool write, void *local,
	     void *handle, size_t len, uint64_t addr, uint64_t key)
{
	int before = rig->segments;
	int ret = rig_start(rig, link, write, local, handle, len, addr, key, NULL);

	if (ret)
		return ret == 1 ? 0 : ret;
	if (!rig_wait_int(rig, &rig->segments, before + 1))
		return -FI_ETIMEDOUT;
	return rig->segment_err;
}

/* ---- server -------------------------------------------------------------------------
 */

/* What couldn't be sent yet: there is no room while a control channel is made anew. */
struct late {
	struct late *next;
	size_t len;
	uint8_t bytes[];
};

struct server_state {
	struct late *late;
	struct late **late_end;
	struct wire_link *link;
	struct rig rig;
	uint8_t *memory;
	size_t size;
	uint64_t key;
	uint64_t access;
	bool quit;
	uint64_t farewell;
	struct wire_link *quit_link;
};

static void late_send(struct server_state *s)
{
	struct late *l;

	while ((l = s->late)) {
		void *pkt = verbs_wire_ops.pkt_reserve(s->link, l->len, WIRE_CONTROL);

		if (!pkt)
			return;
		memcpy(pkt, l->bytes, l->len);
		verbs_wire_ops.pkt_commit(s->link, pkt, l->len);
		s->late = l->next;
		if (!s->late)
			s->late_end = &s->late;
		free(l);
	}
}

static void reply(struct server_state *s, struct wire_link *link, const void *bytes,
		  size_t len)
{
	struct late *l = malloc(sizeof(*l) + len);

	if (!l)
		_exit(3);
	l->next = NULL;
	l->len = len;
	memcpy(l->bytes, bytes, len);
	s->link = link;
	*s->late_end = l;
	s->late_end = &l->next;
	late_send(s);
}

static void answer(struct server_state *s, struct wire_link *link, uint64_t a, uint64_t b)
{
	const struct server_packet out = {.arg = a, .arg2 = b};

	reply(s, link, &out, sizeof(out));
}

static void server_memory(struct server_state *s)
{
	s->memory = mmap(NULL, s->size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->memory == MAP_FAILED)
		_exit(4);
	for (size_t i = 0; i < s->size; i++)
		s->memory[i] = (uint8_t)(i * 7 + (i >> 8));
}

static void server_register(struct server_state *s, struct wire_link *link)
{
	server_memory(s);
	if (rig_register(&s->rig, s->memory, s->size, s->access, &s->key))
		_exit(5);
	answer(s, link, (uintptr_t)s->memory, s->key);
}

/* The old memory stays where it is: whoever writes there is found out. */
static void server_renew(struct server_state *s, struct wire_link *link)
{
	struct mem_region region = {
		.iov_count = 1, .access = s->access, .virt_addr = true};

	rig_unregister(&s->rig, s->key);
	server_memory(s);
	region.iov[0].iov_base = s->memory;
	region.iov[0].iov_len = s->size;
	if (verbs_wire_ops.key_add(s->rig.ep, s->key, &region))
		_exit(7);
	answer(s, link, (uintptr_t)s->memory, s->key);
}

static void server_name(struct server_state *s, struct wire_link *link, size_t len)
{
	void *handle;

	s->size = len;
	s->memory = rig_memory(&s->rig, len, &handle);
	answer(s, link, (uintptr_t)s->memory, verbs_wire_ops.mem_name(s->rig.ep, handle));
}

/* Of all memory the address is one that was mapped afterwards. */
static void server_try(struct server_state *s, struct wire_link *link, size_t len)
{
	int ret;

	s->access = FI_REMOTE_READ | FI_REMOTE_WRITE;
	s->size = len ? len : 1 << 20;
	if (len)
		server_memory(s);
	ret = rig_register(&s->rig, len ? s->memory : NULL, len ? len : SIZE_MAX,
			   s->access, &s->key);
	if (ret) {
		answer(s, link, 0, (uint64_t)-ret);
		return;
	}
	if (!len)
		server_memory(s);
	answer(s, link, (uintptr_t)s->memory, s->key);
}

static bool server_packet(struct rig *rig, struct wire_link *link, const uint8_t *pkt,
			  size_t len)
{
	struct server_state *s = rig->user;
	struct server_packet req = {0};

	memcpy(&req, pkt, len < sizeof(req) ? len : sizeof(req));
	switch ((enum server_op)req.op) {
	case SERVER_ECHO:
		reply(s, link, pkt, len);
		break;
	case SERVER_REGISTER:
		s->size = req.arg;
		s->access = req.arg2;
		server_register(s, link);
		break;
	case SERVER_RENEW:
		server_renew(s, link);
		break;
	case SERVER_CLOSE:
		rig_unregister(rig, s->key);
		answer(s, link, 0, 0);
		break;
	case SERVER_HASH:
		answer(s, link, hash_bytes(s->memory, s->size), 0);
		break;
	case SERVER_SLEEP:
		usleep((useconds_t)(req.arg * 1000));
		break;
	case SERVER_QUIT:
		s->quit = true;
		s->farewell = req.arg;
		s->quit_link = link;
		break;
	case SERVER_SINK:
		break;
	case SERVER_BLOCK:
		rig->sleeps = true;
		break;
	case SERVER_NOTICES:
		answer(s, link, rig->arrived, rig->arrived_len);
		break;
	case SERVER_LATE:
		answer(s, link, rig->arrived_late, rig->arrived_sum);
		break;
	case SERVER_TRY:
		server_try(s, link, req.arg);
		break;
	case SERVER_NAME:
		server_name(s, link, req.arg);
		break;
	}
	return true;
}

static _Noreturn void server_main(int report)
{
	static struct server_state s;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(280);
	rig_open(&s.rig);
	s.rig.on_packet = server_packet;
	s.rig.user = &s;
	s.late_end = &s.late;
	if (write(report, &wire_ep_base(s.rig.ep)->addr, sizeof(struct wire_addr)) < 0)
		_exit(2);
	close(report);
	while (!s.quit || s.late) {
		rig_step(&s.rig);
		if (s.late && s.rig.downs == 0)
			late_send(&s);
	}
	for (uint64_t i = 0; i < s.farewell; i++)
		answer(&s, s.quit_link, i, 0);
	while (s.late && s.rig.downs == 0) {
		rig_step(&s.rig);
		late_send(&s);
	}
	rig_close(&s.rig);
	_exit(0);
}

void server_start(struct server *srv)
{
	int report[2];

	fflush(stdout);
	if (pipe(report) < 0)
		tap_bail("pipe: %s", strerror(errno));
	srv->pid = tap_fork();
	if (srv->pid < 0)
		tap_bail("fork: %s", strerror(errno));
	if (srv->pid == 0) {
		const char *rails = getenv("RIG_SERVER_RAILS");

		close(report[0]);
		if (rails)
			setenv("FI_WEFT_RAILS", rails, 1);
		server_main(report[1]);
	}
	close(report[1]);
	if (read(report[0], &srv->addr, sizeof(srv->addr)) != (ssize_t)sizeof(srv->addr))
		tap_bail("the server did not start");
	close(report[0]);
}

int server_wait(struct server *srv)
{
	int status;

	while (waitpid(srv->pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1000;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool server_ask(struct rig *rig, struct wire_link *link, enum server_op op, uint64_t arg,
		uint64_t arg2)
{
	struct server_packet req = {.op = op, .arg = arg, .arg2 = arg2};
	uint64_t before = rig->packets;

	return rig_send(rig, link, &req, sizeof(req)) &&
	       rig_wait_u64(rig, &rig->packets, before + 1);
}

struct server_packet server_answer(const struct rig *rig)
{
	struct server_packet a;

	memcpy(&a, rig->last, sizeof(a));
	return a;
}
