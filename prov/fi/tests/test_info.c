/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_getinfo: which hints are met, what comes back, and where addresses come from. */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "prov/fi/addr_resolve.h"
#include "prov/fi/entry.h"
#include "prov/fi/info.h"
#include "prov/fi/info_match.h"
#include "prov/fi/limits.h"
#include "prov/fi/nic.h"
#include "prov/fi/tests/fi_test.h"
#include "prov/wire/joined.h"
#include "util/fi_names.h"
#include "util/tap.h"

#define API FI_VERSION(1, 17)

static int ask(uint32_t api, const struct fi_info *hints, struct fi_info **info)
{
	*info = NULL;
	return wfi_getinfo(api, NULL, NULL, 0, hints, info);
}

/* ---- refusals: one field of the hints each
 * -------------------------------------------- */

struct refusal {
	const char *what;
	void (*set)(struct fi_info *h);
};

static void set_type(struct fi_info *h)
{
	h->ep_attr->type = FI_EP_MSG;
}
static void set_dgram(struct fi_info *h)
{
	h->ep_attr->type = FI_EP_DGRAM;
}
static void set_protocol(struct fi_info *h)
{
	h->ep_attr->protocol = FI_PROTO_RXM;
}
static void set_rx_ctx(struct fi_info *h)
{
	h->ep_attr->rx_ctx_cnt = 1u << 20;
}
static void set_auth(struct fi_info *h)
{
	h->ep_attr->auth_key_size = 16;
}
static void set_multicast(struct fi_info *h)
{
	h->caps = FI_MULTICAST;
}
static void set_remote(struct fi_info *h)
{
	h->caps = FI_MSG | FI_REMOTE_COMM;
}
static void set_domain_remote(struct fi_info *h)
{
	h->domain_attr->caps = FI_REMOTE_COMM;
}
static void set_tx_size(struct fi_info *h)
{
	h->tx_attr->size = WFI_SIZE_MAX + 1;
}
static void set_rx_size(struct fi_info *h)
{
	h->rx_attr->size = WFI_SIZE_MAX + 1;
}
static void set_inject(struct fi_info *h)
{
	h->tx_attr->inject_size = WFI_INJECT_SIZE + 1;
}
static void set_iov(struct fi_info *h)
{
	h->rx_attr->iov_limit = WFI_IOV_LIMIT + 1;
}
static void set_order(struct fi_info *h)
{
	h->tx_attr->msg_order = FI_ORDER_WAS;
}
static void set_comp_order(struct fi_info *h)
{
	h->tx_attr->comp_order = FI_ORDER_STRICT;
}
static void set_op_flags(struct fi_info *h)
{
	h->tx_attr->op_flags = FI_COMMIT_COMPLETE;
}
static void set_data_size(struct fi_info *h)
{
	h->domain_attr->cq_data_size = 9;
}
static void set_mr_iov(struct fi_info *h)
{
	h->domain_attr->mr_iov_limit = WFI_MR_IOV_LIMIT + 1;
}
static void set_domain_name(struct fi_info *h)
{
	h->domain_attr->name = strdup("eth0");
}
static void set_fabric_name(struct fi_info *h)
{
	h->fabric_attr->name = strdup("10.0.0.0/8");
}
static void set_format(struct fi_info *h)
{
	h->addr_format = FI_SOCKADDR_IB;
}
static void set_mr_mix(struct fi_info *h)
{
	h->domain_attr->mr_mode = FI_MR_BASIC | FI_MR_LOCAL;
}
static void set_progress(struct fi_info *h)
{
	h->domain_attr->data_progress = 17;
}
static void set_threading(struct fi_info *h)
{
	h->domain_attr->threading = 17;
}
static void set_srx(struct fi_info *h)
{
	h->domain_attr->max_ep_srx_ctx = WFI_SRX_CNT + 1;
}
static void set_foreign_domain(struct fi_info *h)
{
	static struct fid_domain foreign = {.fid.fclass = FI_CLASS_DOMAIN};

	h->domain_attr->domain = &foreign;
}

static void test_refusals(void)
{
	static const struct refusal rows[] = {
		{"FI_EP_MSG", set_type},
		{"FI_EP_DGRAM", set_dgram},
		{"another protocol", set_protocol},
		{"receive contexts without end", set_rx_ctx},
		{"an authorization key", set_auth},
		{"FI_MULTICAST", set_multicast},
		{"FI_REMOTE_COMM", set_remote},
		{"the domain's FI_REMOTE_COMM", set_domain_remote},
		{"tx size", set_tx_size},
		{"rx size", set_rx_size},
		{"inject size", set_inject},
		{"iov limit", set_iov},
		{"FI_ORDER_WAS", set_order},
		{"completion order", set_comp_order},
		{"FI_COMMIT_COMPLETE", set_op_flags},
		{"9 bytes of CQ data", set_data_size},
		{"pieces of a region", set_mr_iov},
		{"another domain name", set_domain_name},
		{"another fabric name", set_fabric_name},
		{"another address format", set_format},
		{"BASIC mixed with bits", set_mr_mix},
		{"unknown progress", set_progress},
		{"unknown threading", set_threading},
		{"shared receive contexts", set_srx},
		{"somebody else's domain", set_foreign_domain},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fi_info *hints = fi_allocinfo(), *info;

		rows[i].set(hints);
		tap_is_int(ask(API, hints, &info), -FI_ENODATA, rows[i].what);
		fi_freeinfo(info);
		hints->domain_attr->domain = NULL;
		fi_freeinfo(hints);
	}
}

/* ---- answers
 * --------------------------------------------------------------------------- */

static void test_no_hints(void)
{
	struct fi_info *info;

	tap_is_int(ask(API, NULL, &info), 0, "no hints");
	tap_is_int((int64_t)info->caps, (int64_t)wfi_caps_all(false),
		   "everything is announced");
	tap_ok(!(info->rx_attr->caps & FI_NAMED_RX_CTX),
	       "naming receive contexts is the sender's");
	tap_is_int((int64_t)info->mode, 0, "no mode bit is required");
	tap_is_int(info->domain_attr->mr_mode, 0, "nor a registration mode");
	tap_ok(info->src_addr && info->src_addrlen, "a source address");
	tap_ok(!info->dest_addr, "no destination");
	tap_is_int(info->ep_attr->type, FI_EP_RDM, "FI_EP_RDM");
	tap_ok(!info->fabric_attr->prov_name, "the name is libfabric's to fill in");
	tap_is_int(info->addr_format, FI_SOCKADDR_IN, "IPv4 first");
	fi_freeinfo(info);
}

static void test_caps(void)
{
	static const struct {
		uint64_t asked;
		uint64_t granted;
	} rows[] = {
		{FI_MSG, FI_MSG | FI_SEND | FI_RECV | FI_MULTI_RECV | FI_LOCAL_COMM},
		{FI_MSG | FI_SEND, FI_MSG | FI_SEND | FI_LOCAL_COMM},
		{FI_TAGGED | FI_SOURCE,
		 FI_TAGGED | FI_SEND | FI_RECV | FI_SOURCE | FI_LOCAL_COMM},
		{FI_RMA, FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE |
				 FI_LOCAL_COMM},
		{FI_RMA | FI_WRITE, FI_RMA | FI_WRITE | FI_LOCAL_COMM},
		{FI_ATOMIC, FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ |
				    FI_REMOTE_WRITE | FI_LOCAL_COMM},
		{FI_ATOMIC | FI_REMOTE_READ, FI_ATOMIC | FI_REMOTE_READ | FI_LOCAL_COMM},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fi_info *hints = fi_allocinfo(), *info;

		hints->caps = rows[i].asked;
		hints->domain_attr->caps = i % 2 ? FI_SHARED_AV : 0;
		tap_is_int(ask(API, hints, &info), 0, "capabilities");
		tap_is_int((int64_t)info->caps, (int64_t)rows[i].granted,
			   "what is granted");
		tap_ok(!(info->tx_attr->caps & ~info->caps) &&
			       !(info->rx_attr->caps & ~info->caps),
		       "both sides have no more");
		tap_is_int((int64_t)info->domain_attr->caps, FI_SHARED_AV | FI_LOCAL_COMM,
			   "the domain's");
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
}

static void test_mr_modes(void)
{
	static const int bits[] = {FI_MR_LOCAL,	    FI_MR_VIRT_ADDR, FI_MR_PROV_KEY,
				   FI_MR_ALLOCATED, FI_MR_RAW,	     FI_MR_ENDPOINT};
	struct fi_info *hints = fi_allocinfo(), *info;
	bool all = true;

	for (unsigned int set = 0; set < 1u << 6; set++) {
		int mode = 0, out;

		for (int b = 0; b < 6; b++)
			mode |= set & (1u << b) ? bits[b] : 0;
		hints->domain_attr->mr_mode = mode;
		if (ask(API, hints, &info)) {
			all = false;
			continue;
		}
		/* What comes back is what the application has to do. */
		out = info->domain_attr->mr_mode;
		all = all && !out;
		fi_freeinfo(info);
	}
	tap_ok(all, "64 combinations of bits: met, and nothing demanded");
	hints->domain_attr->mr_mode = FI_MR_BASIC;
	ask(API, hints, &info);
	tap_is_int(info->domain_attr->mr_mode, FI_MR_BASIC, "BASIC");
	fi_freeinfo(info);
	hints->domain_attr->mr_mode = FI_MR_SCALABLE;
	ask(API, hints, &info);
	tap_is_int(info->domain_attr->mr_mode, FI_MR_SCALABLE, "SCALABLE");
	fi_freeinfo(info);
	hints->domain_attr->mr_mode = FI_MR_UNSPEC;
	ask(FI_VERSION(1, 0), hints, &info);
	tap_is_int(info->domain_attr->mr_mode, FI_MR_SCALABLE, "1.0 is told which");
	fi_freeinfo(info);
	hints->domain_attr->mr_mode = FI_MR_LOCAL;
	tap_is_int(ask(FI_VERSION(1, 4), hints, &info), -FI_ENODATA, "1.4 knows no bits");
	fi_freeinfo(hints);
}

/* ---- entries
 * --------------------------------------------------------------------------- */

static const char *why_absent;
static const char *its_devices;

static const char *fake_absent(const char **devices)
{
	*devices = its_devices;
	return why_absent;
}

static void entries_named(struct prov_params params, const char *domain, const char *want,
			  const char *what)
{
	static const struct wire_ops here = {.name = "shm"};
	static const struct wire_ops wide = {
		.name = "verbs", .remote = true, .absent = fake_absent};
	static const struct wire_ops shy = {.name = "uet", .remote = true, .asked = true};
	static const struct wire_ops *const wires[] = {&here, &wide, &shy};
	struct wfi_entry e[WFI_ENTRIES_MAX];
	size_t n = wfi_entries_of(wires, 3, &params, domain, e);
	char got[2048] = "";

	for (size_t i = 0; i < n; i++) {
		size_t at = strlen(got);

		snprintf(got + at, sizeof(got) - at, "%s%s%s%s ", e[i].name,
			 e[i].remote ? " remote" : "", e[i].near ? " joined" : "",
			 e[i].wire == &wide ? " alone" : "");
		tap_ok(!e[i].near ||
			       (e[i].wire == &joined_wire_ops && e[i].near == &here &&
				(e[i].far == &wide || e[i].far == &shy)),
		       "both wires");
	}
	tap_is_str(got, want, what);
}

static void entries_are(struct prov_params params, const char *want, const char *what)
{
	entries_named(params, NULL, want, what);
}

static void test_entries(void)
{
	struct wfi_entry e = {.name = "verbs:mlx5_0+mlx5_1"};

	why_absent = "no device";
	entries_are((struct prov_params){.shm = 1}, "shm ", "no device: as ever");
	entries_are((struct prov_params){.shm = 1, .claim_remote = 1}, "shm remote ",
		    "FI_WEFT_CLAIM_REMOTE");
	entries_are((struct prov_params){.shm = 1, .wire = PROV_WIRE_VERBS}, "",
		    "FI_WEFT_WIRE=verbs: nothing");
	entries_are((struct prov_params){0}, "", "FI_WEFT_SHM=0: nothing either");
	why_absent = NULL;
	its_devices = "mlx5_0+mlx5_1";
	entries_are((struct prov_params){.shm = 1},
		    "verbs:mlx5_0+mlx5_1 remote joined shm ",
		    "with devices: those first, with shared memory");
	entries_are((struct prov_params){.shm = 1, .wire = PROV_WIRE_SHM}, "shm ",
		    "FI_WEFT_WIRE=shm");
	entries_are((struct prov_params){.shm = 1, .wire = PROV_WIRE_VERBS},
		    "verbs:mlx5_0+mlx5_1 remote joined ", "FI_WEFT_WIRE=verbs");
	entries_are((struct prov_params){0}, "verbs:mlx5_0+mlx5_1 remote alone ",
		    "FI_WEFT_SHM=0: without shared memory");
	entries_are((struct prov_params){.shm = 1, .wire = PROV_WIRE_UET},
		    "uet remote joined ", "FI_WEFT_WIRE=uet, which is in no other list");
	entries_named((struct prov_params){.shm = 1}, "uet",
		      "verbs:mlx5_0+mlx5_1 remote joined uet remote joined shm ",
		      "but where the domain of that name is asked for");
	entries_named((struct prov_params){.shm = 1}, "verbs",
		      "verbs:mlx5_0+mlx5_1 remote joined shm ", "and no other");
	entries_named((struct prov_params){.shm = 1, .wire = PROV_WIRE_SHM}, "uet",
		      "shm ", "or FI_WEFT_WIRE says otherwise");
	its_devices = NULL;
	entries_are((struct prov_params){0}, "verbs remote alone ", "no names");
	tap_ok(wfi_entry_is(&e, "verbs:mlx5_0+mlx5_1") && wfi_entry_is(&e, "verbs") &&
		       !wfi_entry_is(&e, "verb") && !wfi_entry_is(&e, "verbs:") &&
		       !wfi_entry_is(&e, "verbs:mlx5_0") && !wfi_entry_is(&e, ""),
	       "its name, or the wire's");
}

/* A wire whose endpoints have one context each. */
static void test_single(void)
{
	struct wfi_entry e = {.name = "uet", .remote = true, .single = true};
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_MSG;
	hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->ep_attr->rx_ctx_cnt = 1;
	tap_is_int(wfi_info_match(API, hints, &e), 0, "one context, or a shared one");
	hints->ep_attr->rx_ctx_cnt = 2;
	tap_is_int(wfi_info_match(API, hints, &e), -FI_ENODATA, "not two");
	e.single = false;
	tap_is_int(wfi_info_match(API, hints, &e), 0, "which others have");
	e.single = true;
	hints->ep_attr->rx_ctx_cnt = 0;
	hints->domain_attr->max_ep_tx_ctx = 2;
	tap_is_int(wfi_info_match(API, hints, &e), -FI_ENODATA, "nor the room for them");
	hints->domain_attr->max_ep_tx_ctx = 0;
	hints->caps |= FI_NAMED_RX_CTX;
	tap_is_int(wfi_info_match(API, hints, &e), -FI_ENODATA, "nor names of them");
	fi_freeinfo(hints);
}

static void test_echo(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->domain_attr->threading = FI_THREAD_COMPLETION;
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	hints->domain_attr->control_progress = 3;
	hints->domain_attr->av_type = FI_AV_MAP;
	hints->domain_attr->resource_mgmt = FI_RM_DISABLED;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_WAR;
	hints->tx_attr->size = 7;
	hints->domain_attr->name = strdup("shm");
	hints->fabric_attr->name = strdup(WFI_FABRIC_NAME);
	hints->mode = ~0ull;
	tap_is_int(ask(API, hints, &info), 0, "hints");
	tap_is_int(info->domain_attr->threading, FI_THREAD_COMPLETION, "threading");
	tap_is_int(info->domain_attr->data_progress, FI_PROGRESS_AUTO, "data progress");
	tap_is_int(info->domain_attr->control_progress, 3, "control progress (unified)");
	tap_is_int(info->domain_attr->av_type, FI_AV_MAP, "vector type");
	tap_is_int(info->domain_attr->resource_mgmt, FI_RM_DISABLED,
		   "resource management");
	tap_is_int((int64_t)info->tx_attr->op_flags, FI_DELIVERY_COMPLETE, "op flags");
	tap_is_int((int64_t)info->tx_attr->size, 7, "size");
	tap_is_int((int64_t)info->tx_attr->msg_order, FI_ORDER_SAS,
		   "rule E1: only the order that was asked for");
	tap_ok(info->ep_attr->max_order_waw_size && info->ep_attr->max_order_war_size &&
		       !info->ep_attr->max_order_raw_size,
	       "rule E1: with its size");
	tap_is_int((int64_t)info->mode, 0, "no mode bits");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* A program of 2.x gives longer attributes. */
static void test_newer(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	/* Where they are does not depend on the headers that this is built with. */
	union {
		struct fi_domain_attr old;
		struct {
			char old[192];
			size_t max_ep_auth_key;
			uint32_t max_group_id;
		} newer;
	} *longer = calloc(1, 512);

	free(hints->domain_attr);
	hints->domain_attr = &longer->old;
	tap_is_int(ask(FI_VERSION(2, 6), hints, &info), 0, "2.6 is honoured");
	fi_freeinfo(info);
	longer->newer.max_group_id = 3;
	tap_is_int(ask(FI_VERSION(2, 6), hints, &info), -FI_ENODATA,
		   "peer groups aren't there");
	tap_is_int(ask(FI_VERSION(1, 17), hints, &info), 0, "1.17 has no such field");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* ---- addresses
 * ------------------------------------------------------------------------- */

static void expect_addr(const void *sa, const char *host, uint16_t port, const char *what)
{
	const struct sockaddr_in *in = sa;
	char text[INET_ADDRSTRLEN] = "";

	if (in)
		inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
	tap_ok(in && strcmp(text, host) == 0 && ntohs(in->sin_port) == port, "%s: %s:%u",
	       what, text, in ? ntohs(in->sin_port) : 0);
}

static void fake_describe(char *text, size_t len)
{
	snprintf(text, len, "two lines\nof words\n");
}

/* Devices in an entry, and what libfabric does with them. */
static void test_nic(void)
{
	static const struct wire_ops none = {.name = "verbs"},
				     wire = {.name = "verbs", .describe = fake_describe};
	struct wfi_entry e = {.name = "verbs:mlx5_0+mlx5_1", .wire = &wire};
	struct fi_info *info = fi_allocinfo(), *copy;
	char text[1024] = "before\n", little[12] = "";

	tap_ok(wfi_nic_make(&e, &info->nic) == 0 && info->nic, "an entry with devices");
	copy = fi_dupinfo(info);
	fi_freeinfo(info);
	tap_is_str(copy->nic->device_attr->name, "mlx5_0+mlx5_1", "copied with its info");
	copy->nic->fid.ops->tostr(&copy->nic->fid, text, sizeof(text));
	tap_ok(strncmp(text, "before\nnic:\n    devices: mlx5_0+mlx5_1\n", 40) == 0,
	       "shown behind what is there");
	copy->nic->fid.ops->tostr(&copy->nic->fid, little, sizeof(little));
	tap_is_str(little, "nic:\n    de", "as far as there is room");
	fi_freeinfo(copy);
	info = fi_allocinfo();
	e.wire = &none;
	tap_ok(wfi_nic_make(&e, &info->nic) == 0 && !info->nic,
	       "a wire that says nothing");
	e = (struct wfi_entry){.name = "shm", .wire = &wire};
	tap_ok(wfi_nic_make(&e, &info->nic) == 0 && !info->nic,
	       "an entry without devices");
	fi_freeinfo(info);
}

static void test_addresses(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(77)};
	struct wire_addr other;
	char host[INET_ADDRSTRLEN];

	hints->addr_format = FI_SOCKADDR;
	wfi_getinfo(API, "127.0.0.1", "9228", 0, hints, &info);
	expect_addr(info->dest_addr, "127.0.0.1", 9228, "a destination");
	expect_addr(info->src_addr, "127.0.0.1", 0, "the source that reaches it");
	fi_freeinfo(info);
	wfi_getinfo(API, "127.0.0.1", "9228", FI_SOURCE, hints, &info);
	expect_addr(info->src_addr, "127.0.0.1", 9228, "a source");
	tap_ok(!info->dest_addr, "alone");
	fi_freeinfo(info);
	wfi_getinfo(API, NULL, "9228", FI_SOURCE, hints, &info);
	wfi_addr_default(AF_INET, &other);
	inet_ntop(AF_INET, &other.in.sin_addr, host, sizeof(host));
	expect_addr(info->src_addr, host, 9228, "a service only: the usual host");
	memcpy(&other, info->src_addr, info->src_addrlen);
	tap_ok(wfi_addr_is_default(&other), "which nobody asked for");
	fi_freeinfo(info);
	wfi_getinfo(API, "0.0.0.0", "5", FI_SOURCE, hints, &info);
	expect_addr(info->src_addr, host, 5, "any host");
	fi_freeinfo(info);

	inet_pton(AF_INET, "127.0.0.1", &in.sin_addr);
	hints->src_addr = malloc(sizeof(in));
	memcpy(hints->src_addr, &in, sizeof(in));
	hints->src_addrlen = sizeof(in);
	wfi_getinfo(API, "127.0.0.2", "6", 0, hints, &info);
	expect_addr(info->src_addr, "127.0.0.1", 77, "a source by hint");
	expect_addr(info->dest_addr, "127.0.0.2", 6, "and a destination");
	tap_ok(!info->next, "the hint's family only");
	fi_freeinfo(info);
	inet_pton(AF_INET, "192.0.2.77",
		  &((struct sockaddr_in *)hints->src_addr)->sin_addr);
	tap_is_int(ask(API, hints, &info), -FI_ENODATA,
		   "a source that isn't this host's");
	fi_freeinfo(hints);

	tap_is_int(wfi_getinfo(API, "no such host.invalid", "1", 0, NULL, &info),
		   -FI_ENODATA, "an unknown node");
	tap_is_int(wfi_getinfo(API, "127.0.0.1", "no-such-service", 0, NULL, &info),
		   -FI_ENODATA, "an unknown service");
	tap_is_int(wfi_getinfo(API, "localhost", "1", FI_NUMERICHOST, NULL, &info),
		   -FI_ENODATA, "FI_NUMERICHOST: no names");
	tap_is_int(wfi_getinfo(API, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &info), 0,
		   "names only");
	tap_is_str(info->fabric_attr->name, WFI_FABRIC_NAME, "the fabric's");
	fi_freeinfo(info);
}

static void test_ipv6(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct wire_addr self;

	hints->addr_format = FI_SOCKADDR_IN6;
	if (!wfi_addr_default(AF_INET6, &self)) {
		tap_is_int(ask(API, hints, &info), -FI_ENODATA, "no IPv6 on this host");
		tap_skip(2, "no IPv6 on this host");
	} else {
		tap_is_int(wfi_getinfo(API, "::1", "9", 0, hints, &info), 0, "IPv6");
		tap_is_int(info->addr_format, FI_SOCKADDR_IN6, "its format");
		tap_is_int((int64_t)info->dest_addrlen, sizeof(struct sockaddr_in6),
			   "its size");
		fi_freeinfo(info);
	}
	fi_freeinfo(hints);
}

int main(void)
{
	test_no_hints();
	test_caps();
	test_refusals();
	test_mr_modes();
	test_entries();
	test_single();
	test_echo();
	test_newer();
	test_addresses();
	test_nic();
	test_ipv6();
	return tap_done();
}
