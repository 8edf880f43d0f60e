/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getopt and fi_setopt, fi_control of every object, and fi_tostr of all that the
 * provider says: what is there works, all else is refused with the same code everywhere.
 */
#include "config.h"

#include "fabtests/own/util.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct want want_all = {.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC,
				     .counters = true};

/* Options of 2.x, which these headers may lack. */
enum {
	OPT_CUDA_API_PERMITTED = 10,
	OPT_SHARED_MEMORY_PERMITTED,
	OPT_MAX_MSG_SIZE,
	OPT_MAX_TAGGED_SIZE,
	OPT_MAX_RMA_SIZE,
	OPT_MAX_ATOMIC_SIZE,
	OPT_INJECT_MSG_SIZE,
	OPT_INJECT_TAGGED_SIZE,
	OPT_INJECT_RMA_SIZE,
	OPT_INJECT_ATOMIC_SIZE,
	OPT_END,
};

/* ---- options */

static int get(struct side *s, int name, void *val, size_t *len)
{
	return fi_getopt(&s->node.ep->fid, FI_OPT_ENDPOINT, name, val, len);
}

static int set(struct side *s, int name, const void *val, size_t len)
{
	return fi_setopt(&s->node.ep->fid, FI_OPT_ENDPOINT, name, val, len);
}

static size_t get_size(struct side *s, int name)
{
	size_t v = 0, len = sizeof(v);

	side_must(s, get(s, name, &v, &len), "fi_getopt");
	side_check_u64(s, len, sizeof(v), "length of an option");
	return v;
}

/* Wrong levels and lengths, of an option that can be asked. */
static void option_abuse(struct side *s, int name, size_t len, bool can_set)
{
	uint8_t before[16], after[16], long_one[32] = {0};
	struct fid *ep = &s->node.ep->fid;
	size_t n = len;

	side_must(s, get(s, name, before, &n), "fi_getopt");
	side_check(s,
		   fi_getopt(ep, FI_OPT_ENDPOINT + 1, name, after, &n) == -FI_ENOPROTOOPT,
		   "option %d: another level", name);
	side_check(s, fi_setopt(ep, -1, name, before, len) == -FI_ENOPROTOOPT,
		   "option %d: another level", name);
	n = len - 1;
	side_check(s, get(s, name, after, &n) == -FI_ETOOSMALL && n == len,
		   "option %d: too little room", name);
	n = len;
	side_check(s, get(s, name, NULL, &n) == -FI_EINVAL, "option %d: no room", name);
	side_check(s, get(s, name, after, NULL) == -FI_EINVAL, "option %d: no length",
		   name);
	n = sizeof(long_one);
	side_check(s,
		   get(s, name, long_one, &n) == 0 && n == len &&
			   !memcmp(long_one, before, len) && !long_one[len],
		   "option %d: more room than it needs", name);
	if (!can_set) {
		side_check(s, set(s, name, before, len) == -FI_ENOPROTOOPT,
			   "option %d: it is there to be read", name);
		return;
	}
	side_check(s, set(s, name, before, len + 1) == -FI_EINVAL, "option %d: too long",
		   name);
	side_check(s, set(s, name, before, len - 1) == -FI_EINVAL, "option %d: too short",
		   name);
	side_check(s, set(s, name, NULL, len) == -FI_EINVAL, "option %d: nothing", name);
	n = len;
	side_check(s, get(s, name, after, &n) == 0 && !memcmp(before, after, len),
		   "option %d: nothing of that changed it", name);
}

static void sizes_run(struct side *s)
{
	const struct {
		int name;
		size_t most;
	} rows[] = {
		{OPT_MAX_MSG_SIZE, s->node.info->ep_attr->max_msg_size},
		{OPT_MAX_TAGGED_SIZE, s->node.info->ep_attr->max_msg_size},
		{OPT_MAX_RMA_SIZE, s->node.info->ep_attr->max_msg_size},
		{OPT_MAX_ATOMIC_SIZE, 65536},
		{OPT_INJECT_MSG_SIZE, s->node.info->tx_attr->inject_size},
		{OPT_INJECT_TAGGED_SIZE, s->node.info->tx_attr->inject_size},
		{OPT_INJECT_RMA_SIZE, s->node.info->tx_attr->inject_size},
		{OPT_INJECT_ATOMIC_SIZE, s->node.info->tx_attr->inject_size},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t v = rows[i].most;

		side_check_u64(s, get_size(s, rows[i].name), v, "a limit as announced");
		option_abuse(s, rows[i].name, sizeof(v), true);
		v++;
		side_check(s, set(s, rows[i].name, &v, sizeof(v)) == -FI_EINVAL,
			   "option %d: more than there is", rows[i].name);
		for (v = 0; v < 3; v++) {
			side_must(s, set(s, rows[i].name, &v, sizeof(v)), "fi_setopt");
			side_check_u64(s, get_size(s, rows[i].name), v, "what was set");
		}
		v = rows[i].most;
		side_must(s, set(s, rows[i].name, &v, sizeof(v)), "fi_setopt");
	}
}

static void queue_sizes_run(struct side *s, const struct fi_info *info)
{
	size_t v = 0;

	side_check_u64(s, get_size(s, FI_OPT_TX_SIZE), info->tx_attr->size, "tx size");
	side_check_u64(s, get_size(s, FI_OPT_RX_SIZE), info->rx_attr->size, "rx size");
	for (int name = FI_OPT_TX_SIZE; name <= FI_OPT_RX_SIZE; name++) {
		option_abuse(s, name, sizeof(v), true);
		v = 0;
		side_check(s, set(s, name, &v, sizeof(v)) == -FI_EINVAL, "no room");
		v = (name == FI_OPT_TX_SIZE ? info->tx_attr : NULL)
			    ? info->tx_attr->size + 1
			    : info->rx_attr->size + 1;
		side_check(s, set(s, name, &v, sizeof(v)) == -FI_EINVAL,
			   "more than announced");
		v = 17;
		side_must(s, set(s, name, &v, sizeof(v)), "fi_setopt");
		side_check_u64(s, get_size(s, name), 17, "what was set");
	}
}

static void memory_run(struct side *s)
{
	static const struct {
		int value, rc;
	} p2p[] = {{FI_HMEM_P2P_DISABLED, 0},
		   {FI_HMEM_P2P_PREFERRED, 0},
		   {FI_HMEM_P2P_REQUIRED, -FI_EOPNOTSUPP},
		   {-1, -FI_EINVAL},
		   {4, -FI_EINVAL},
		   {FI_HMEM_P2P_ENABLED, 0}};
	struct fi_trigger_xpu xpu = {.iface = FI_HMEM_CUDA};
	size_t len = sizeof(xpu);
	bool yes;

	option_abuse(s, FI_OPT_FI_HMEM_P2P, sizeof(int), true);
	for (size_t i = 0; i < ARRAY_LEN(p2p); i++) {
		int now = -7;

		side_check(s,
			   set(s, FI_OPT_FI_HMEM_P2P, &p2p[i].value, sizeof(int)) ==
				   p2p[i].rc,
			   "FI_OPT_FI_HMEM_P2P %d", p2p[i].value);
		len = sizeof(now);
		side_must(s, get(s, FI_OPT_FI_HMEM_P2P, &now, &len), "fi_getopt");
		side_check(s, (now == p2p[i].value) == !p2p[i].rc, "it is %d", now);
	}
	len = sizeof(xpu);
	side_check(s, get(s, FI_OPT_XPU_TRIGGER, &xpu, &len) == -FI_EOPNOTSUPP,
		   "FI_OPT_XPU_TRIGGER");
	side_check(s, set(s, FI_OPT_XPU_TRIGGER, &xpu, sizeof(xpu)) == -FI_ENOPROTOOPT,
		   "FI_OPT_XPU_TRIGGER is set");
	for (int name = OPT_CUDA_API_PERMITTED; name <= OPT_SHARED_MEMORY_PERMITTED;
	     name++) {
		option_abuse(s, name, sizeof(bool), true);
		yes = true;
		side_must(s, set(s, name, &yes, sizeof(yes)), "fi_setopt");
	}
	yes = false;
	side_must(s, set(s, OPT_CUDA_API_PERMITTED, &yes, sizeof(yes)), "fi_setopt");
	side_check(s,
		   set(s, OPT_SHARED_MEMORY_PERMITTED, &yes, sizeof(yes)) ==
			   -FI_EOPNOTSUPP,
		   "without shared memory");
	len = sizeof(yes);
	side_must(s, get(s, OPT_CUDA_API_PERMITTED, &yes, &len), "fi_getopt");
	side_check(s, !yes, "what was set");
	side_must(s, get(s, OPT_SHARED_MEMORY_PERMITTED, &yes, &len), "fi_getopt");
	side_check(s, yes, "it is shared memory all the same");
}

static void options_run(struct side *s)
{
	static const int none[] = {FI_OPT_BUFFERED_MIN,
				   FI_OPT_BUFFERED_LIMIT,
				   FI_OPT_SEND_BUF_SIZE,
				   FI_OPT_RECV_BUF_SIZE,
				   OPT_END,
				   -1,
				   -2048};
	struct fi_info *info;
	size_t v, len;
	struct fid_ep *enabled;

	node_open_alone(s, &s->node, &want_all);
	info = s->node.info;
	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		v = 1;
		len = sizeof(v);
		side_check(s, get(s, none[i], &v, &len) == -FI_ENOPROTOOPT, "option %d",
			   none[i]);
		side_check(s, set(s, none[i], &v, sizeof(v)) == -FI_ENOPROTOOPT,
			   "option %d is set", none[i]);
	}
	option_abuse(s, FI_OPT_CM_DATA_SIZE, sizeof(v), false);
	side_check_u64(s, get_size(s, FI_OPT_CM_DATA_SIZE), 0, "data of connections");
	option_abuse(s, FI_OPT_MIN_MULTI_RECV, sizeof(v), true);
	v = 4711;
	side_must(s, set(s, FI_OPT_MIN_MULTI_RECV, &v, sizeof(v)), "fi_setopt");
	side_check_u64(s, get_size(s, FI_OPT_MIN_MULTI_RECV), 4711, "what was set");
	sizes_run(s);
	memory_run(s);
	/* That one is enabled; the next isn't yet. */
	v = 5;
	side_check(s, set(s, FI_OPT_TX_SIZE, &v, sizeof(v)) == -FI_EOPBADSTATE,
		   "queues of an endpoint that is enabled");
	enabled = s->node.ep;
	side_must(s, fi_endpoint(s->node.domain, info, &s->node.ep, NULL), "fi_endpoint");
	queue_sizes_run(s, info);
	side_must(s, fi_close(&s->node.ep->fid), "fi_close of an endpoint");
	s->node.ep = enabled;
	node_close(s, &s->node);
}

/* A shared receive context has those that are about receiving, or about everything. */
static void shared_run(struct side *s)
{
	static const struct {
		int name;
		bool there;
	} rows[] = {{FI_OPT_MIN_MULTI_RECV, true},  {FI_OPT_RX_SIZE, true},
		    {FI_OPT_FI_HMEM_P2P, true},	    {OPT_SHARED_MEMORY_PERMITTED, true},
		    {OPT_CUDA_API_PERMITTED, true}, {FI_OPT_TX_SIZE, false},
		    {FI_OPT_CM_DATA_SIZE, false},   {FI_OPT_XPU_TRIGGER, false},
		    {OPT_MAX_MSG_SIZE, false},	    {OPT_INJECT_ATOMIC_SIZE, false},
		    {FI_OPT_BUFFERED_MIN, false}};
	struct fid_ep *srx;
	uint8_t val[8];
	size_t v = 100, len;

	node_open_alone(s, &s->node, &want_all);
	side_must(s, fi_srx_context(s->node.domain, s->node.info->rx_attr, &srx, NULL),
		  "fi_srx_context");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		len = sizeof(val);
		side_check(s,
			   fi_getopt(&srx->fid, FI_OPT_ENDPOINT, rows[i].name, val,
				     &len) == (rows[i].there ? 0 : -FI_ENOPROTOOPT),
			   "option %d", rows[i].name);
	}
	side_must(s,
		  fi_setopt(&srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &v,
			    sizeof(v)),
		  "fi_setopt");
	side_check(s,
		   fi_setopt(&srx->fid, FI_OPT_ENDPOINT, FI_OPT_RX_SIZE, &v, sizeof(v)) ==
			   -FI_EOPBADSTATE,
		   "the size of a shared receive context");
	len = sizeof(v);
	v = 0;
	side_must(s,
		  fi_getopt(&srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &v, &len),
		  "fi_getopt");
	side_check_u64(s, v, 100, "what was set");
	side_must(s, fi_close(&srx->fid), "fi_close");
	node_close(s, &s->node);
}

/* ---- fi_control */

struct object {
	const char *name;
	struct fid *fid;
	uint32_t commands; /* those that it has, by bit */
};

#define HAS(command) (1u << (command))
#define WAITS	     (HAS(FI_GETWAIT) | HAS(FI_GETWAITOBJ))
#define FLAGS	     (HAS(FI_GETOPSFLAG) | HAS(FI_SETOPSFLAG))

/* Every command that isn't there is -FI_ENOSYS, whatever comes with it; one that is wants
 * its argument. */
static void object_run(struct side *s, const struct object *o)
{
	uint64_t nothing[64] = {0};

	for (int command = -1; command < 32; command++) {
		bool has = command >= 0 && (o->commands & HAS(command));

		if (has && (command == FI_ENABLE || command == FI_FLUSH_WORK))
			continue;
		side_check(s,
			   fi_control(o->fid, command, NULL) ==
				   (has ? -FI_EINVAL : -FI_ENOSYS),
			   "%s, command %d without argument: %d", o->name, command,
			   fi_control(o->fid, command, NULL));
		if (!has)
			side_check(s, fi_control(o->fid, command, nothing) == -FI_ENOSYS,
				   "%s, command %d", o->name, command);
	}
}

static void control_run(struct side *s)
{
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_NONE};
	struct fi_wait_attr wait_attr = {.wait_obj = FI_WAIT_FD};
	struct fi_poll_attr poll_attr = {0};
	struct node *n = &s->node;
	enum fi_wait_obj obj = FI_WAIT_NONE;
	struct fid_wait *wait;
	struct fid_poll *poll;
	struct fid_stx *stx;
	struct fid_eq *eq;
	struct fid_mr *mr;
	uint8_t byte;
	uint64_t flags;

	node_open_alone(s, n, &want_all);
	side_must(s, fi_eq_open(n->fabric, &eq_attr, &eq, NULL), "fi_eq_open");
	side_must(s, fi_wait_open(n->fabric, &wait_attr, &wait), "fi_wait_open");
	side_must(s, fi_poll_open(n->domain, &poll_attr, &poll), "fi_poll_open");
	side_must(s, fi_stx_context(n->domain, NULL, &stx, NULL), "fi_stx_context");
	side_must(s, fi_mr_reg(n->domain, &byte, 1, FI_REMOTE_READ, 0, 1, 0, &mr, NULL),
		  "fi_mr_reg");
	const struct object objects[] = {
		{"fabric", &n->fabric->fid, 0},
		{"domain", &n->domain->fid,
		 HAS(FI_MAP_RAW_MR) | HAS(FI_UNMAP_KEY) | HAS(FI_QUEUE_WORK) |
			 HAS(FI_CANCEL_WORK) | HAS(FI_FLUSH_WORK)},
		{"vector", &n->av->fid, 0},
		{"completion queue", &n->cq->fid, WAITS},
		{"counter", &n->tx_cntr->fid, WAITS | FLAGS},
		{"endpoint", &n->ep->fid, HAS(FI_ENABLE) | HAS(FI_ALIAS) | FLAGS},
		{"event queue", &eq->fid, WAITS},
		{"wait set", &wait->fid, WAITS},
		{"poll set", &poll->fid, 0},
		{"shared transmit context", &stx->fid, 0},
		{"region", &mr->fid,
		 HAS(FI_ENABLE) | HAS(FI_REFRESH) | HAS(FI_GET_RAW_MR)},
	};

	for (size_t i = 0; i < ARRAY_LEN(objects); i++)
		object_run(s, &objects[i]);
	side_must(s, fi_control(&wait->fid, FI_GETWAITOBJ, &obj), "FI_GETWAITOBJ");
	side_check_u64(s, obj, FI_WAIT_FD, "wait object of a wait set");
	side_must(s, fi_control(&eq->fid, FI_GETWAITOBJ, &obj), "FI_GETWAITOBJ");
	side_check_u64(s, obj, FI_WAIT_NONE, "wait object of an event queue");
	side_check(s, fi_control(&eq->fid, FI_GETWAIT, &obj) == -FI_ENODATA,
		   "what it would wait on");
	flags = 77;
	side_must(s, fi_control(&n->tx_cntr->fid, FI_GETOPSFLAG, &flags),
		  "FI_GETOPSFLAG");
	side_check_u64(s, flags, 0, "flags of a counter");
	side_must(s, fi_control(&n->tx_cntr->fid, FI_SETOPSFLAG, &flags),
		  "FI_SETOPSFLAG");
	flags = FI_COMPLETION;
	side_check(s,
		   fi_control(&n->tx_cntr->fid, FI_SETOPSFLAG, &flags) == -FI_EBADFLAGS,
		   "flags that a counter can't have");
	side_check(s, fi_control(&n->ep->fid, FI_SETOPSFLAG, &flags) == -FI_EINVAL,
		   "flags of neither side");
	flags = FI_TRANSMIT | FI_RECV;
	side_check(s, fi_control(&n->ep->fid, FI_GETOPSFLAG, &flags) == -FI_EINVAL,
		   "flags of both sides");
	flags = FI_RECV | FI_INJECT;
	side_check(s, fi_control(&n->ep->fid, FI_SETOPSFLAG, &flags) == -FI_EBADFLAGS,
		   "flags of the other side");
	flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
	side_must(s, fi_control(&n->ep->fid, FI_SETOPSFLAG, &flags), "FI_SETOPSFLAG");
	flags = FI_TRANSMIT;
	side_must(s, fi_control(&n->ep->fid, FI_GETOPSFLAG, &flags), "FI_GETOPSFLAG");
	side_check_u64(s, flags, FI_DELIVERY_COMPLETE, "what was set");
	side_must(s, fi_control(&n->ep->fid, FI_ENABLE, NULL), "FI_ENABLE, twice");
	side_must(s, fi_close(&mr->fid), "fi_close");
	side_must(s, fi_close(&stx->fid), "fi_close");
	side_must(s, fi_close(&poll->fid), "fi_close");
	side_must(s, fi_close(&wait->fid), "fi_close");
	side_must(s, fi_close(&eq->fid), "fi_close");
	node_close(s, n);
}

/* ---- fi_tostr */

/* Bits of its own that the libfabric here doesn't print: 1.17 has no word for this one.
 */
static bool is_nameless(uint64_t bit, enum fi_type type)
{
	return type == FI_TYPE_CAPS && bit == FI_AV_USER_ID &&
	       FI_VERSION_LT(fi_version(), FI_VERSION(1, 18));
}

/* Each bit has a name. */
static void bits_named(struct side *s, uint64_t bits, enum fi_type type, size_t len,
		       const char *what)
{
	for (int i = 0; i < 64; i++) {
		uint64_t bit = bits & (1ull << i);
		uint32_t narrow = (uint32_t)bit;

		if (!bit || is_nameless(bit, type))
			continue;
		side_check(s,
			   !strncmp(fi_tostr(len == 4 ? (void *)&narrow : &bit, type),
				    "FI_", 3),
			   "%s: bit %d has no name", what, i);
	}
}

static void word_named(struct side *s, const void *word, enum fi_type type,
		       const char *what)
{
	const char *text = fi_tostr(word, type);

	side_check(s, *text && !strstr(text, "nknown"), "%s: %s", what, text);
}

static void info_named(struct side *s, const struct fi_info *info)
{
	const struct fi_domain_attr *d = info->domain_attr;
	uint64_t bit = 1ull << 47;

	/* What this test lives by: a bit that means nothing has no name. */
	side_check(s, strncmp(fi_tostr(&bit, FI_TYPE_MSG_ORDER), "FI_", 3) != 0,
		   "a name for nothing");
	bits_named(s, info->caps, FI_TYPE_CAPS, 8, "caps");
	bits_named(s, info->tx_attr->caps, FI_TYPE_CAPS, 8, "tx caps");
	bits_named(s, info->rx_attr->caps, FI_TYPE_CAPS, 8, "rx caps");
	bits_named(s, d->caps, FI_TYPE_CAPS, 8, "domain caps");
	bits_named(s, info->mode | info->tx_attr->mode | info->rx_attr->mode | d->mode,
		   FI_TYPE_MODE, 8, "mode");
	bits_named(s, info->tx_attr->op_flags | info->rx_attr->op_flags, FI_TYPE_OP_FLAGS,
		   8, "op_flags");
	bits_named(s, info->tx_attr->msg_order | info->rx_attr->msg_order,
		   FI_TYPE_MSG_ORDER, 8, "msg_order");
	bits_named(s, (uint32_t)d->mr_mode, FI_TYPE_MR_MODE, 4, "mr_mode");
	word_named(s, &info->addr_format, FI_TYPE_ADDR_FORMAT, "address format");
	word_named(s, &info->ep_attr->type, FI_TYPE_EP_TYPE, "endpoint type");
	word_named(s, &d->threading, FI_TYPE_THREADING, "threading");
	word_named(s, &d->data_progress, FI_TYPE_PROGRESS, "data progress");
	word_named(s, &d->control_progress, FI_TYPE_PROGRESS, "control progress");
	word_named(s, &d->av_type, FI_TYPE_AV_TYPE, "vector type");
	/* Of a protocol of its own libfabric knows no name. */
	side_check(s, *fi_tostr(info, FI_TYPE_INFO), "the whole has no text");
}

static void atomics_named(struct side *s)
{
	for (int type = 0; type < FI_DATATYPE_LAST + 2; type++) {
		for (int op = 0; op < FI_ATOMIC_OP_LAST; op++) {
			struct fi_atomic_attr attr;

			if (fi_query_atomic(s->node.domain, (enum fi_datatype)type,
					    (enum fi_op)op, &attr, 0))
				continue;
			word_named(s, &type, FI_TYPE_ATOMIC_TYPE, "datatype");
			word_named(s, &op, FI_TYPE_ATOMIC_OP, "operation");
		}
	}
}

static void tostr_run(struct side *s)
{
	const uint64_t completions = FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_RMA |
				     FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ |
				     FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA | FI_MULTI_RECV;
	struct fi_info *all, *hints;

	side_must(s, fi_getinfo(API_VERSION, NULL, NULL, 0, NULL, &all), "fi_getinfo");
	for (struct fi_info *i = all; i; i = i->next)
		if (!strcmp(i->fabric_attr->prov_name, test_provider()))
			info_named(s, i);
	fi_freeinfo(all);
	node_open_alone(s, &s->node, &want_all);
	info_named(s, s->node.info);
	/* All that may be asked for at once. */
	hints = node_hints(&want_all);
	hints->caps = 0;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->tx_attr->op_flags = FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE |
				   FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
	hints->rx_attr->op_flags = FI_COMPLETION | FI_MULTI_RECV;
	side_must(s, fi_getinfo(API_VERSION, NULL, NULL, 0, hints, &all), "fi_getinfo");
	info_named(s, all);
	fi_freeinfo(all);
	fi_freeinfo(hints);
	bits_named(s, completions, FI_TYPE_CQ_EVENT_FLAGS, 8, "completion flags");
	atomics_named(s);
	node_close(s, &s->node);
}

#define BOTH(fn) .run = {fn, fn}

static const struct test_case cases[] = {
	{.name = "options of endpoints", BOTH(options_run), .needs_weft = true},
	{.name = "options of a shared receive context",
	 BOTH(shared_run),
	 .needs_weft = true},
	{.name = "fi_control of every object", BOTH(control_run), .needs_weft = true},
	{.name = "fi_tostr of what is announced", BOTH(tostr_run)},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
