/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getinfo: what is asked for is given or refused as a whole, nothing is volunteered
 * that costs something, and addresses are resolved. Each case runs in one process; the
 * other side has nothing to do.
 */
#include "config.h"

#include "fabtests/own/util.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_collective.h>

#include "util/fi_names.h"

#define PRIMARY                                                                     \
	(FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_MULTICAST | FI_NAMED_RX_CTX | \
	 FI_DIRECTED_RECV | FI_HMEM | FI_COLLECTIVE)

static const struct want want_msg = {.caps = FI_MSG};

static void idle(struct side *s)
{
	(void)s;
}

/* Frees hints. NULL when there is no data. */
static struct fi_info *ask_at(struct side *s, struct fi_info *hints, const char *node,
			      const char *service, uint64_t flags)
{
	struct fi_info *info = NULL;
	int rc = fi_getinfo(API_VERSION, node, service, flags, hints, &info);

	fi_freeinfo(hints);
	side_check(s, rc == 0 || rc == -FI_ENODATA, "fi_getinfo: %s", fi_strerror(-rc));
	return info;
}

static struct fi_info *ask(struct side *s, struct fi_info *hints)
{
	return ask_at(s, hints, NULL, NULL, 0);
}

static void refused(struct side *s, struct fi_info *hints, const char *what)
{
	struct fi_info *info = ask(s, hints);

	side_check(s, !info, "%s: there is data", what);
	fi_freeinfo(info);
}

static struct fi_info *given(struct side *s, struct fi_info *hints, const char *what)
{
	struct fi_info *info = ask(s, hints);

	if (!info)
		side_die(s, "%s: no data", what);
	return info;
}

/* ---- too much is refused */

static void limits_run(struct side *s)
{
	struct fi_info *most = given(s, node_hints(&want_msg), "plain hints"), *h;

#define OVER(field, value, text) (h = node_hints(&want_msg), h->field = (value), h), text
	refused(s, OVER(ep_attr->type, FI_EP_DGRAM, "FI_EP_DGRAM"));
	refused(s, OVER(ep_attr->type, FI_EP_MSG, "FI_EP_MSG"));
	refused(s, OVER(ep_attr->max_msg_size, most->ep_attr->max_msg_size + 1,
			"message size"));
	refused(s, OVER(ep_attr->protocol, FI_PROTO_IB_UD, "protocol"));
	refused(s, OVER(ep_attr->tx_ctx_cnt, 999, "transmit contexts"));
	refused(s, OVER(ep_attr->rx_ctx_cnt, 999, "receive contexts"));
	refused(s, OVER(ep_attr->auth_key_size, 7, "authorisation key"));
	refused(s, OVER(tx_attr->size, most->tx_attr->size * 1000, "transmit size"));
	refused(s, OVER(rx_attr->size, most->rx_attr->size * 1000, "receive size"));
	refused(s, OVER(tx_attr->inject_size, most->tx_attr->inject_size + 1,
			"inject size"));
	refused(s, OVER(tx_attr->iov_limit, most->tx_attr->iov_limit + 1,
			"transmit pieces"));
	refused(s,
		OVER(rx_attr->iov_limit, most->rx_attr->iov_limit + 1, "receive pieces"));
	refused(s, OVER(tx_attr->rma_iov_limit, 1000, "remote pieces"));
	refused(s, OVER(domain_attr->cq_data_size, 9, "remote data"));
	refused(s, OVER(domain_attr->mr_key_size, 999, "key size"));
	refused(s, OVER(caps, FI_MSG | FI_MULTICAST, "FI_MULTICAST"));
	refused(s, OVER(caps, FI_MSG | FI_COLLECTIVE, "FI_COLLECTIVE"));
	refused(s, OVER(caps, FI_MSG | 1ull << 40, "an unknown capability"));
	refused(s, OVER(addr_format, FI_ADDR_EFA, "address format"));
	h = node_hints(&want_msg);
	h->domain_attr->name = strdup("no such domain");
	refused(s, h, "domain name");
	h = node_hints(&want_msg);
	h->fabric_attr->name = strdup("no such fabric");
	refused(s, h, "fabric name");
#undef OVER
	/* And what it says is the most is taken. */
	h = node_hints(&want_msg);
	h->tx_attr->inject_size = most->tx_attr->inject_size;
	h->tx_attr->iov_limit = most->tx_attr->iov_limit;
	h->rx_attr->size = most->rx_attr->size;
	h->ep_attr->max_msg_size = most->ep_attr->max_msg_size;
	fi_freeinfo(given(s, h, "exactly the limits"));
	fi_freeinfo(most);
}

/* ---- echoes */

static void echo_run(struct side *s)
{
	static const enum fi_threading threads[] = {
		FI_THREAD_UNSPEC, FI_THREAD_SAFE,	FI_THREAD_FID,
		FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT};
	struct fi_info *h, *info;

	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		h = node_hints(&want_msg);
		h->domain_attr->threading = threads[i];
		info = given(s, h, "a threading level");
		if (threads[i] != FI_THREAD_UNSPEC)
			side_check_u64(s, info->domain_attr->threading, threads[i],
				       "threading level");
		fi_freeinfo(info);
	}
	for (int av = FI_AV_MAP; av <= FI_AV_TABLE; av++) {
		h = node_hints(&want_msg);
		h->domain_attr->av_type = (enum fi_av_type)av;
		info = given(s, h, "a kind of address vector");
		side_check_u64(s, info->domain_attr->av_type, (uint64_t)av,
			       "address vector");
		fi_freeinfo(info);
	}
	for (int p = FI_PROGRESS_AUTO; p <= FI_PROGRESS_MANUAL; p++) {
		h = node_hints(&want_msg);
		h->domain_attr->data_progress = (enum fi_progress)p;
		h->domain_attr->control_progress = (enum fi_progress)p;
		info = ask(s, h);
		if (!side_check(s, info != NULL || p == FI_PROGRESS_AUTO,
				"manual progress"))
			continue;
		if (info)
			side_check_u64(s, info->domain_attr->data_progress, (uint64_t)p,
				       "progress");
		fi_freeinfo(info);
	}
	h = node_hints(&want_msg);
	h->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	info = given(s, h, "FI_DELIVERY_COMPLETE");
	side_check(s, info->tx_attr->op_flags & FI_DELIVERY_COMPLETE,
		   "op_flags got lost");
	fi_freeinfo(info);
}

/* ---- capabilities */

static void caps_check(struct side *s, uint64_t asked)
{
	const struct want want = {.caps = asked, .mr_mode = FI_MR_BASIC};
	struct fi_info *info = ask(s, node_hints(&want)), *i;

	if (!side_check(s, info != NULL, "0x%llx: no data", (unsigned long long)asked))
		return;
	for (i = info; i; i = i->next) {
		const uint64_t local = FI_LOCAL_COMM | FI_REMOTE_COMM;

		side_check_u64(s, i->caps & PRIMARY & ~asked, 0,
			       "capabilities volunteered");
		side_check_u64(s, asked & ~i->caps, 0, "capabilities missing");
		side_check_u64(s, i->tx_attr->caps & ~i->caps, 0,
			       "tx_attr->caps beyond caps");
		side_check_u64(s, i->rx_attr->caps & ~i->caps, 0,
			       "rx_attr->caps beyond caps");
		side_check_u64(s, i->caps & local, i->domain_attr->caps & local,
			       "local and remote in both places");
		side_check(s, i->caps & local, "neither local nor remote");
		if (!(asked & FI_SOURCE))
			side_check(s, !(i->caps & FI_SOURCE), "FI_SOURCE volunteered");
		side_check_u64(s, i->mode, 0, "mode");
		side_check(s, i->src_addr && i->src_addrlen, "no source address");
		side_check(s, i->ep_attr->type == FI_EP_RDM, "endpoint type");
	}
	fi_freeinfo(info);
}

static void caps_run(struct side *s)
{
	static const uint64_t some[] = {FI_MSG,
					FI_TAGGED,
					FI_RMA,
					FI_MSG | FI_TAGGED | FI_RMA,
					FI_MSG | FI_SEND,
					FI_MSG | FI_RECV,
					FI_RMA | FI_READ | FI_WRITE,
					FI_RMA | FI_REMOTE_READ | FI_REMOTE_WRITE,
					FI_ATOMIC,
					FI_ATOMIC | FI_WRITE,
					FI_ATOMIC | FI_MSG | FI_REMOTE_WRITE,
					FI_MSG | FI_MULTI_RECV,
					FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV,
					FI_MSG | FI_LOCAL_COMM};

	for (size_t i = 0; i < ARRAY_LEN(some); i++)
		caps_check(s, some[i]);
}

/* Only what works is announced. */
static void honest_run(struct side *s)
{
	struct fi_info *hints = fi_allocinfo(), *info, *i;

	hints->fabric_attr->prov_name = strdup(test_provider());
	info = given(s, hints, "no hints but the name");
	for (i = info; i; i = i->next) {
		side_check_u64(s, i->ep_attr->type, FI_EP_RDM, "endpoint type");
		side_check_u64(s, i->caps & FI_REMOTE_COMM, 0,
			       "FI_REMOTE_COMM without a wire");
		side_check(s, i->caps & FI_LOCAL_COMM, "no FI_LOCAL_COMM");
		side_check_u64(s, i->domain_attr->cq_data_size, 8, "remote data");
		side_check_u64(s, i->ep_attr->mem_tag_format >> 63, 1, "highest tag bit");
	}
	fi_freeinfo(info);
	refused(s, node_hints(&(struct want){.caps = FI_MSG | FI_REMOTE_COMM}),
		"FI_REMOTE_COMM");
}

/* The wire over UDP is there for who names its domain, and for nobody else. */
static void named_run(struct side *s)
{
	struct fi_info *hints = fi_allocinfo(), *info, *i;
	struct fid_fabric *fabric;
	struct fid_domain *domain;

	hints->fabric_attr->prov_name = strdup(test_provider());
	for (i = info = given(s, fi_dupinfo(hints), "no name"); i; i = i->next)
		side_check(s, strcmp(i->domain_attr->name, "uet") != 0,
			   "uet, which nobody asked for");
	fi_freeinfo(info);
	hints->caps = FI_MSG | FI_REMOTE_COMM;
	hints->domain_attr->name = strdup("uet");
	info = given(s, hints, "a domain uet");
	for (i = info; i; i = i->next)
		side_check(s, strcmp(i->domain_attr->name, "uet") == 0,
			   "another domain: %s", i->domain_attr->name);
	side_must(s, fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	side_must(s, fi_domain(fabric, info, &domain, NULL), "a domain by that name");
	fi_close(&domain->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
}

static void claim_run(struct side *s)
{
	const struct want want = {.caps = FI_MSG | FI_LOCAL_COMM | FI_REMOTE_COMM};
	struct fi_info *info;

	setenv("FI_WEFT_CLAIM_REMOTE", "1", 1);
	info = given(s, node_hints(&want), "FI_REMOTE_COMM with FI_WEFT_CLAIM_REMOTE=1");
	side_check(s,
		   info->caps & FI_REMOTE_COMM &&
			   info->domain_attr->caps & FI_REMOTE_COMM,
		   "it isn't in both places");
	fi_freeinfo(info);
}

/* ---- addresses */

static void source_check(struct side *s, const char *node, const char *service,
			 int family)
{
	struct fi_info *info = ask_at(s, node_hints(&want_msg), node, service, FI_SOURCE);
	const struct sockaddr_in *in;

	if (!info)
		side_die(s, "no data for source %s", node);
	in = info->src_addr;
	side_check(s, in->sin_family == family, "family %d of %s", in->sin_family, node);
	side_check_u64(s, ntohs(in->sin_port), service ? 9228 : 0, "port");
	side_check(s, !info->dest_addr, "a destination that nobody named");
	fi_freeinfo(info);
}

static void addresses_run(struct side *s)
{
	struct fi_info *h, *info;
	struct sockaddr_in *in;

	source_check(s, "127.0.0.1", "9228", AF_INET);
	source_check(s, "127.0.0.1", NULL, AF_INET);
	info = ask_at(s, node_hints(&want_msg), "127.0.0.1", "9229", 0);
	if (!info || !info->dest_addr)
		side_die(s, "no destination");
	in = info->dest_addr;
	side_check_u64(s, ntohs(in->sin_port), 9229, "port of a destination");
	side_check(s, info->src_addr != NULL, "no source with a destination");
	fi_freeinfo(info);
	h = node_hints(&want_msg);
	h->addr_format = FI_SOCKADDR_IN6;
	info = ask_at(s, h, "127.0.0.1", NULL, FI_SOURCE | FI_NUMERICHOST);
	side_check(s, !info, "an IPv4 source as FI_SOCKADDR_IN6");
	fi_freeinfo(info);
	info = ask_at(s, node_hints(&want_msg), "no.such.host.invalid", NULL, 0);
	side_check(s, !info, "a destination that can't be resolved");
	fi_freeinfo(info);
	info = ask_at(s, node_hints(&want_msg), "no.such.host.invalid", "9228",
		      FI_SOURCE);
	side_check(s, !info, "a source that can't be resolved");
	fi_freeinfo(info);
}

static void addresses6_run(struct side *s)
{
	struct fi_info *h = node_hints(&want_msg), *info;

	source_check(s, "::1", "9228", AF_INET6);
	h->addr_format = FI_SOCKADDR_IN6;
	info = ask_at(s, h, "::1", NULL, FI_SOURCE);
	side_check(s, info && info->addr_format == FI_SOCKADDR_IN6, "FI_SOCKADDR_IN6");
	fi_freeinfo(info);
}

/* A message over IPv6 addresses, and between the two kinds of address vector. */
static void ipv6_side(struct side *s)
{
	struct fi_info *h = node_hints(&want_msg), *info;
	struct node *n = &s->node;
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av = {.type = s->role ? FI_AV_MAP : FI_AV_TABLE};
	char name[sizeof(n->name)];
	struct done d;
	uint8_t in[8];

	h->domain_attr->av_type = av.type;
	info = ask_at(s, h, "::1", NULL, FI_SOURCE);
	if (!info)
		side_lacks(s, "no IPv6");
	n->info = info;
	side_must(s, fi_fabric(info->fabric_attr, &n->fabric, NULL), "fi_fabric");
	side_must(s, fi_domain(n->fabric, info, &n->domain, NULL), "fi_domain");
	side_must(s, fi_av_open(n->domain, &av, &n->av, NULL), "fi_av_open");
	side_must(s, fi_cq_open(n->domain, &cq, &n->cq, NULL), "fi_cq_open");
	side_must(s, fi_endpoint(n->domain, info, &n->ep, NULL), "fi_endpoint");
	side_must(s, fi_ep_bind(n->ep, &n->av->fid, 0), "fi_ep_bind");
	side_must(s, fi_ep_bind(n->ep, &n->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	side_must(s, fi_enable(n->ep), "fi_enable");
	n->name_len = sizeof(n->name);
	side_must(s, fi_getname(&n->ep->fid, n->name, &n->name_len), "fi_getname");
	side_check_u64(s, n->name_len, sizeof(struct sockaddr_in6), "length of the name");
	side_tell(s, n->name, sizeof(n->name));
	side_hear(s, name, sizeof(name));
	side_check(s, fi_av_insert(n->av, name, 1, &n->peer, 0, NULL) == 1,
		   "fi_av_insert");
	while (node_again(s, fi_recv(n->ep, in, 8, NULL, FI_ADDR_UNSPEC, in), "fi_recv"))
		;
	while (node_again(s, fi_send(n->ep, "1234567", 8, NULL, n->peer, n), "fi_send"))
		;
	for (int i = 0; i < 2; i++) {
		if (!node_next(s, &d, WAIT_MS) || d.err)
			side_die(s, "no message over IPv6");
	}
	side_check(s, memcmp(in, "1234567", 8) == 0, "the message over IPv6");
	side_meet(s);
	node_close(s, n);
}

/* ---- calls of what isn't announced say so, and change nothing */

static void absent_run(struct side *s)
{
	struct fi_av_set_attr set_attr = {.count = 0, .end_addr = FI_ADDR_NOTAVAIL};
	struct fi_collective_attr attr = {.op = FI_SUM, .datatype = FI_INT32};
	struct node *n = &s->node;
	struct fid_av_set *set = NULL;
	struct fid_mc *mc = NULL;
	int in = 1, out = 2;
	struct done d;

	node_open_alone(s, n, &want_msg);
	side_check_u64(s, (uint64_t)fi_join(n->ep, n->name, 0, &mc, NULL),
		       (uint64_t)-FI_ENOSYS, "fi_join");
	side_check_u64(s,
		       (uint64_t)fi_join_collective(n->ep, n->self, NULL, 0, &mc, NULL),
		       (uint64_t)-FI_ENOSYS, "fi_join_collective");
	side_check_u64(s, (uint64_t)fi_av_set(n->av, &set_attr, &set, NULL),
		       (uint64_t)-FI_ENOSYS, "fi_av_set");
	side_check_u64(s,
		       (uint64_t)fi_query_collective(n->domain, FI_ALLREDUCE, &attr, 0),
		       (uint64_t)-FI_ENOSYS, "fi_query_collective");
	side_check_u64(s, (uint64_t)fi_barrier(n->ep, n->self, NULL),
		       (uint64_t)-FI_ENOSYS, "fi_barrier");
	side_check_u64(s,
		       (uint64_t)fi_allreduce(n->ep, &in, 1, NULL, &out, NULL, n->self,
					      FI_INT32, FI_SUM, 0, NULL),
		       (uint64_t)-FI_ENOSYS, "fi_allreduce");
	side_check(s, !mc && !set && out == 2, "something was made");
	/* And it works on. */
	side_must(s, fi_recv(n->ep, &out, sizeof(out), NULL, FI_ADDR_UNSPEC, &out),
		  "recv");
	side_must(s, fi_inject(n->ep, &in, sizeof(in), n->self), "fi_inject");
	node_expect(s, &d, FI_MSG | FI_RECV, &out);
	side_check_u64(s, (uint64_t)out, 1, "content");
	node_close(s, n);
}

static const struct test_case cases[] = {
	{.name = "beyond the limits there is no data", .run = {limits_run, idle}},
	{.name = "what was asked for comes back", .run = {echo_run, idle}},
	{.name = "no capability is volunteered", .run = {caps_run, idle}},
	{.name = "only what works is announced",
	 .run = {honest_run, idle},
	 .needs_weft = true},
	{.name = "the domain uet by its name",
	 .run = {named_run, idle},
	 .needs_weft = true},
	{.name = "FI_WEFT_CLAIM_REMOTE=1", .run = {claim_run, idle}, .needs_weft = true},
	{.name = "calls of what isn't there",
	 .run = {absent_run, idle},
	 .needs_weft = true},
	{.name = "nodes and services", .run = {addresses_run, idle}},
};

/* Whether this host has it: many containers don't. */
static bool ipv6_is_here(void)
{
	const struct sockaddr_in6 self = {.sin6_family = AF_INET6,
					  .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool here =
		fd >= 0 && bind(fd, (const struct sockaddr *)&self, sizeof(self)) == 0;

	if (fd >= 0)
		close(fd);
	return here;
}

int main(int argc, char **argv)
{
	struct test_case ipv6[] = {
		{.name = "nodes of IPv6", .run = {addresses6_run, idle}},
		{.name = "messages over IPv6", .run = {ipv6_side, ipv6_side}},
	};

	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	for (size_t i = 0; i < ARRAY_LEN(ipv6) && !ipv6_is_here(); i++)
		ipv6[i].skip = "no IPv6 on this host";
	cases_run(ipv6, ARRAY_LEN(ipv6), "");
	return test_done();
}
