/* SPDX-License-Identifier: BSD-2-Clause */
/* Which devices there are, which of them are used, and opening these. */
#include "config.h"

#include "prov/wire/verbs/verbs_dev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/wire/verbs/verbs_fork.h"
#include "prov/wire/verbs/verbs_rail.h"
#include "topo/fabric/map.h"

#define PORTS_MOST 64

/* Less than a completion queue, a send queue and a receive queue need. */
#define MEMLOCK_LEAST (UINT64_C(4) << 20)

/* A port that might be a rail. */
struct port {
	char name[DQPLB_RAIL_NAME + 1];
	struct ibv_device *device;
	struct ibv_context *context; /* the same for all ports of a device */
	uint8_t number;
	bool active;
	bool used; /* a rail has the context */
	enum ibv_port_state state;
};

struct scan {
	const struct verbs_lib *lib;
	struct ibv_device **list;
	struct port port[PORTS_MOST];
	size_t count;
	size_t devices;	     /* RDMA devices that can have reliable connections */
	const char *foreign; /* one that can't; NULL: there is none */
	char dead[64];	     /* a device that couldn't be opened */
	int dead_err;
};

void verbs_want_read(struct verbs_want *want)
{
	const struct prov_params *p = prov_params();

	*want = (struct verbs_want){
		.rails = p->rails,
		.lanes = p->lanes,
		.profile = p->profile,
		.fabric_map = p->fabric_map,
		.host = p->fabric_host,
		.gid_index = p->gid_index,
		.auth_key = p->auth_key,
		.pkey_index = (uint16_t)p->pkey_index,
		.service_level = (uint8_t)p->service_level,
		.hop_limit = (uint8_t)p->hop_limit,
		.ooo = (enum prov_ooo)p->verbs_ooo,
		.fork = (enum prov_fork)p->verbs_fork,
		.native = p->verbs_atomics == PROV_ATOMICS_NATIVE,
		.shm = p->shm,
	};
}

/* ---- memory that may be locked ------------------------------------------------------
 */

bool verbs_memlock_low(uint64_t limit, bool privileged, struct verbs_error *error)
{
	if (privileged || limit >= MEMLOCK_LEAST)
		return false;
	verbs_error_set(error, 0,
			"this process may lock %llu KiB of memory (RLIMIT_MEMLOCK), and "
			"RDMA needs %llu at the least, better no limit: raise it by "
			"\"ulimit -l unlimited\", memlock in /etc/security/limits.conf, "
			"or LimitMEMLOCK=infinity of the service that starts it",
			(unsigned long long)limit >> 10,
			(unsigned long long)MEMLOCK_LEAST >> 10);
	return true;
}

/* Root in a container often hasn't it; others may. */
static bool may_lock_all(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (syscall(SYS_capget, &head, data) != 0)
		return geteuid() == 0;
	return (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)) !=
	       0;
}

bool verbs_memlock_bad(struct verbs_error *error)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
	       limit.rlim_cur != RLIM_INFINITY &&
	       verbs_memlock_low(limit.rlim_cur, may_lock_all(), error);
}

/* ---- scanning -----------------------------------------------------------------------
 */

/* The device's name, of further ports "name.2". */
static bool port_name(struct port *p, const char *device)
{
	int len = p->number == 1 ? snprintf(p->name, sizeof(p->name), "%s", device)
				 : snprintf(p->name, sizeof(p->name), "%s.%u", device,
					    p->number);

	return len > 0 && (size_t)len < sizeof(p->name) &&
	       fabric_name_valid(p->name, (size_t)len, DQPLB_RAIL_NAME);
}

static void scan_device(struct scan *s, struct ibv_device *device)
{
	const char *name = s->lib->get_device_name(device);
	struct ibv_context *context = s->lib->open_device(device);
	struct ibv_device_attr attr;
	size_t before = s->count;

	memset(&attr, 0, sizeof(attr));
	if (!context) {
		s->dead_err = errno;
		snprintf(s->dead, sizeof(s->dead), "%s", name);
		return;
	}
	if (s->lib->query_device(context, &attr) != 0)
		attr.phys_port_cnt = 0;
	for (unsigned n = 1; n <= attr.phys_port_cnt && s->count < PORTS_MOST; n++) {
		struct port *p = &s->port[s->count];
		struct ibv_port_attr pa;

		*p = (struct port){
			.device = device, .context = context, .number = (uint8_t)n};
		if (!port_name(p, name) ||
		    verbs_query_port(s->lib, context, p->number, &pa) != 0)
			continue;
		p->state = pa.state;
		p->active = pa.state == IBV_PORT_ACTIVE;
		s->count++;
	}
	if (s->count == before)
		s->lib->close_device(context);
}

static int scan_open(struct scan *s, struct verbs_error *error)
{
	int count = 0;

	memset(s, 0, sizeof(*s));
	s->lib = verbs_lib();
	if (!s->lib)
		return verbs_error_set(error, -FI_ENODATA, "%s", verbs_lib_absent());
	s->list = s->lib->get_device_list(&count);
	if (!s->list)
		return verbs_error_set(error, -FI_ENODATA,
				       "libibverbs lists no devices: %s; the kernel's "
				       "ib_uverbs may be missing",
				       strerror(errno));
	for (int i = 0; i < count; i++) {
		/* iWARP can't be connected by cards, and what a vendor has of its own
		 * (Amazon's SRD) is left to libfabric's provider for it. */
		if (s->list[i]->transport_type != IBV_TRANSPORT_IB ||
		    s->list[i]->node_type != IBV_NODE_CA) {
			s->foreign = s->lib->get_device_name(s->list[i]);
			continue;
		}
		s->devices++;
		scan_device(s, s->list[i]);
	}
	return 0;
}

/* Closes what no rail uses. */
static void scan_close(struct scan *s)
{
	struct ibv_context *last = NULL;
	bool used = false;

	for (size_t i = 0; i <= s->count; i++) {
		struct port *p = i < s->count ? &s->port[i] : NULL;

		if (last && (!p || p->context != last)) {
			if (!used)
				s->lib->close_device(last);
			used = false;
		}
		last = p ? p->context : NULL;
		used = used || (p && p->used);
	}
	if (s->list)
		s->lib->free_device_list(s->list);
}

static int none_active(const struct scan *s, struct verbs_error *error)
{
	char text[200] = "";
	size_t at = 0;

	if (!s->devices && s->foreign)
		return verbs_error_set(
			error, -FI_ENODATA,
			"RDMA device %s has no reliable connections of InfiniBand or "
			"RoCE: libfabric's own provider is for it (efa for Amazon's, "
			"verbs for iWARP)",
			s->foreign);
	if (!s->devices)
		return verbs_error_set(error, -FI_ENODATA,
				       "there is no RDMA device on this host");
	if (!s->count && s->dead[0])
		return verbs_error_set(
			error, s->dead_err == EACCES ? -FI_EACCES : -FI_ENODATA,
			"RDMA device %s can't be opened: %s; this process needs "
			"/dev/infiniband",
			s->dead, strerror(s->dead_err));
	for (size_t i = 0; i < s->count && at < sizeof(text) - 1; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s is %s",
				       i ? ", " : "", s->port[i].name,
				       s->lib->port_state_str(s->port[i].state));
	return verbs_error_set(error, -FI_ENODATA,
			       "no port of an RDMA device is active: %s; see cable, "
			       "switch, and \"ip link\" or the subnet manager",
			       text);
}

/* ---- choosing -----------------------------------------------------------------------
 */

struct choice {
	struct port *port[DQPLB_RAILS_MAX];
	uint8_t number[DQPLB_RAILS_MAX]; /* of the map; UINT8_MAX: none */
	size_t count;
	bool named; /* by the user: none of them is left out */
};

static struct port *port_find(struct scan *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->port[i].name, name) == 0)
			return &s->port[i];
	return NULL;
}

static uint8_t map_number(const struct fabric_host *host, const char *device)
{
	for (unsigned i = 0; host && i < FABRIC_RAILS_MAX; i++)
		if (strcmp(host->device[i], device) == 0)
			return (uint8_t)i;
	return UINT8_MAX;
}

static void choice_add(struct choice *c, struct port *p, const struct fabric_host *host)
{
	if (c->count == DQPLB_RAILS_MAX)
		return;
	c->number[c->count] = map_number(host, p->name);
	c->port[c->count++] = p;
}

/* Those that the map gives to this host, in its order. */
static bool choose_by_map(struct scan *s, const struct fabric_host *host,
			  struct choice *c)
{
	for (unsigned i = 0; host && i < FABRIC_RAILS_MAX; i++) {
		struct port *p =
			host->device[i][0] ? port_find(s, host->device[i]) : NULL;

		if (p && p->active)
			choice_add(c, p, host);
		else if (host->device[i][0])
			FI_WARN(&weft_provider, FI_LOG_CORE,
				"the fabric map gives %s to this host, which %s\n",
				host->device[i], p ? "is not active" : "isn't there");
	}
	return c->count > 0;
}

static int choose_by_name(struct scan *s, const struct dqplb_rails *rails,
			  const struct fabric_host *host, struct choice *c,
			  struct verbs_error *error)
{
	struct dqplb_rails_error why = {""};
	const char *names[PORTS_MOST];
	size_t chosen[PORTS_MOST], n;

	for (size_t i = 0; i < s->count; i++)
		names[i] = s->port[i].name;
	n = dqplb_rails_choose(rails, names, s->count, chosen, &why);
	if (n == 0)
		return verbs_error_set(error, -FI_ENODATA, "FI_WEFT_RAILS: %s", why.text);
	c->named = !rails->all && !rails->except;
	for (size_t i = 0; i < n; i++) {
		struct port *p = &s->port[chosen[i]];

		if (p->active)
			choice_add(c, p, host);
		else
			FI_WARN(&weft_provider, FI_LOG_CORE,
				"rail %s is not used: its port is %s\n", p->name,
				s->lib->port_state_str(p->state));
	}
	return c->count ? 0 : none_active(s, error);
}

static int choose(struct scan *s, const struct verbs_want *want,
		  const struct fabric_host *host, struct choice *c,
		  struct verbs_error *error)
{
	struct dqplb_rails rails = {.all = true};
	struct dqplb_rails_error why = {""};

	memset(c, 0, sizeof(*c));
	if (want->rails && !dqplb_rails_parse(want->rails, &rails, &why))
		return verbs_error_set(error, -FI_EINVAL, "FI_WEFT_RAILS: %s", why.text);
	if (!s->count)
		return none_active(s, error);
	if (rails.all && choose_by_map(s, host, c))
		return 0;
	return choose_by_name(s, &rails, host, c, error);
}

/* Rails without a number of the map's get those that are left. */
static void numbers_fill(struct verbs_dev *dev)
{
	uint32_t taken = 0;

	for (uint32_t i = 0; i < dev->rails; i++)
		if (dev->rail[i].number < DQPLB_RAILS_MAX)
			taken |= 1u << dev->rail[i].number;
	for (uint32_t i = 0; i < dev->rails; i++) {
		uint8_t n = 0;

		if (dev->rail[i].number < DQPLB_RAILS_MAX)
			continue;
		while (taken & 1u << n)
			n++;
		dev->rail[i].number = n;
		taken |= 1u << n;
	}
}

/* ---- opening ------------------------------------------------------------------------
 */

static void rail_close(const struct verbs_lib *lib, struct verbs_rail *rail)
{
	if (rail->shared)
		return;
	if (rail->pd)
		lib->dealloc_pd(rail->pd);
}

static int rail_open(struct verbs_dev *dev, const struct verbs_want *want,
		     struct port *port, uint8_t number, struct verbs_error *error)
{
	struct verbs_rail *rail = &dev->rail[dev->rails];
	int rc, flags;

	memset(rail, 0, sizeof(*rail));
	snprintf(rail->name, sizeof(rail->name), "%s", port->name);
	rail->port = port->number;
	rail->number = number;
	rail->context = port->context;
	rail->looking = &dev->looking;
	rail->moving = &dev->moving;
	rail->async_fd = port->context->async_fd;
	for (uint32_t i = 0; i < dev->rails; i++) {
		if (dev->rail[i].context != rail->context)
			continue;
		rail->shared = true;
		rail->pd = dev->rail[i].pd;
	}
	flags = fcntl(rail->async_fd, F_GETFL);
	if (flags >= 0)
		fcntl(rail->async_fd, F_SETFL, flags | O_NONBLOCK);
	rc = verbs_rail_look(dev->lib, want, rail, error);
	if (rc) {
		rail_close(dev->lib, rail);
		return rc;
	}
	port->used = true;
	dev->rails++;
	return 0;
}

static int rails_open(struct verbs_dev *dev, const struct verbs_want *want,
		      const struct choice *c, struct verbs_error *error)
{
	int rc = -FI_ENODATA;

	for (size_t i = 0; i < c->count; i++) {
		int one = rail_open(dev, want, c->port[i], c->number[i], error);

		if (one)
			FI_WARN(&weft_provider, FI_LOG_CORE, "rail %s is not used: %s\n",
				c->port[i]->name, error->text);
		if (one && (c->named || one == -FI_EINVAL))
			return one;
		rc = one;
	}
	if (!dev->rails)
		return rc;
	numbers_fill(dev);
	return 0;
}

static int ooo_check(struct verbs_dev *dev, const struct verbs_want *want,
		     struct verbs_error *error)
{
	if (want->ooo != PROV_OOO_ON)
		return 0;
	for (uint32_t i = 0; i < dev->rails; i++)
		if (!dev->rail[i].ooo_depth)
			return verbs_error_set(
				error, -FI_EINVAL,
				"FI_WEFT_VERBS_OOO=on: %s places data in order only "
				"(FI_LOG_LEVEL=info says why); unset it, or leave the "
				"device out by FI_WEFT_RAILS=^%s",
				dev->rail[i].name, dev->rail[i].name);
	return 0;
}

/* Whoever changes memory atomically there must be one and the same device (rule E4). */
static int atomics_check(struct verbs_dev *dev, const struct verbs_want *want,
			 struct verbs_error *error)
{
	static const char option[] = "FI_WEFT_VERBS_ATOMICS=native";

	if (!want->native)
		return 0;
	if (want->shm)
		return verbs_error_set(
			error, -FI_EINVAL,
			"%s: processes of this host would be reached by shared memory, "
			"where processors do them: set FI_WEFT_SHM=0 as well",
			option);
	if (dev->rails != 1)
		return verbs_error_set(
			error, -FI_EINVAL,
			"%s: a device knows nothing of another's, and there are %u "
			"rails: name one of them by FI_WEFT_RAILS",
			option, dev->rails);
	if (!dev->rail[0].limits.atomic)
		return verbs_error_set(error, -FI_EINVAL,
				       "%s: %s has no atomic operations: unset it",
				       option, dev->rail[0].name);
	dev->native = true;
	return 0;
}

static int profiles_read(const struct verbs_want *want, bool software,
			 struct dqplb_profiles *all, struct verbs_error *error)
{
	struct dqplb_profile_error why = {""};

	dqplb_profiles_init(all);
	if (software)
		dqplb_profiles_software(all);
	if ((want->lanes && !dqplb_profiles_lanes(all, want->lanes, &why)) ||
	    (want->profile && !dqplb_profiles_set(all, want->profile, &why)))
		return verbs_error_set(error, -FI_EINVAL, "%s", why.text);
	return 0;
}

static bool all_software(const struct verbs_dev *dev)
{
	for (uint32_t i = 0; i < dev->rails; i++)
		if (!dev->rail[i].software)
			return false;
	return true;
}

/* ---- where this host stands ---------------------------------------------------------
 */

/* As much of the name as a card can say. */
static void host_name(char name[FABRIC_HOST_MAX + 1])
{
	char full[256] = "";
	size_t len;

	gethostname(full, sizeof(full) - 1);
	len = strnlen(full, FABRIC_HOST_MAX);
	memcpy(name, full, len);
	memset(name + len, 0, FABRIC_HOST_MAX + 1 - len);
	if (!fabric_name_valid(name, len, FABRIC_HOST_MAX))
		memset(name, 0, FABRIC_HOST_MAX + 1);
}

static int map_host(const struct verbs_want *want, const char *name,
		    struct fabric_host *host, bool *found, struct verbs_error *error)
{
	struct fabric_error why = {0};
	struct fabric_map *map;
	char brief[FABRIC_HOST_MAX + 1];
	int rc = fabric_map_load(want->fabric_map, &map, &why);

	if (rc)
		return verbs_error_set(error, rc == -ENOMEM ? -FI_ENOMEM : -FI_EINVAL,
				       "FI_WEFT_FABRIC_MAP=%.100s, line %u: %s",
				       want->fabric_map, why.line, why.text);
	snprintf(brief, sizeof(brief), "%.*s", (int)strcspn(name, "."), name);
	*found = fabric_map_host(map, name, host) || fabric_map_host(map, brief, host);
	fabric_map_free(map);
	if (*found || !want->host)
		return 0;
	return verbs_error_set(error, -FI_EINVAL,
			       "FI_WEFT_FABRIC_HOST=%.63s: the fabric map %.100s has no "
			       "such host",
			       want->host, want->fabric_map);
}

/* Fills in dev->place; *host is what the map says, if *found. */
static int place_find(struct verbs_dev *dev, const struct verbs_want *want,
		      struct fabric_host *host, bool *found, struct verbs_error *error)
{
	int rc;

	*found = false;
	memset(&dev->place, 0, sizeof(dev->place));
	host_name(dev->place.host);
	if (want->host) {
		if (!fabric_name_valid(want->host, strlen(want->host), FABRIC_HOST_MAX))
			return verbs_error_set(error, -FI_EINVAL,
					       "FI_WEFT_FABRIC_HOST=%.63s: no name of a "
					       "host",
					       want->host);
		memset(dev->place.host, 0, sizeof(dev->place.host));
		memcpy(dev->place.host, want->host, strlen(want->host));
	}
	if (!want->fabric_map)
		return 0;
	rc = map_host(want, dev->place.host, host, found, error);
	if (!rc && *found) {
		struct fabric_place own = host->place;

		memcpy(own.host, dev->place.host, sizeof(own.host));
		dev->place = own;
	} else if (!rc) {
		FI_WARN(&weft_provider, FI_LOG_CORE,
			"the fabric map %s has no host %s: its place is not known "
			"(FI_WEFT_FABRIC_HOST names it)\n",
			want->fabric_map, dev->place.host);
	}
	return rc;
}

/* Once a process is enough to hear of it. */
static int fork_look(const struct verbs_want *want, struct verbs_error *error)
{
	static atomic_bool said;
	const struct verbs_lib *lib = verbs_lib();
	enum verbs_fork state = VERBS_FORK_COPIED;
	int rc = lib ? verbs_fork_ready(lib, want->fork, &state, error) : 0;

	if (rc || state == VERBS_FORK_COPIED || atomic_exchange(&said, true))
		return rc;
	if (state == VERBS_FORK_KEPT)
		FI_INFO(&weft_provider, FI_LOG_CORE,
			"a forked child doesn't get memory that is registered with RDMA "
			"devices: this kernel doesn't copy it\n");
	else
		FI_WARN(&weft_provider, FI_LOG_CORE,
			"this kernel shares memory that is registered with RDMA devices "
			"with a forked child, and what arrives there may be lost then: "
			"don't fork, or set RDMAV_FORK_SAFE=1 (FI_WEFT_VERBS_FORK)\n");
	return 0;
}

static int dev_open(struct verbs_dev *dev, const struct verbs_want *want,
		    struct verbs_error *error)
{
	struct fabric_host host;
	struct choice c;
	struct scan s;
	bool found;
	/* What is wrong with them is said whatever devices there are. */
	int rc = profiles_read(want, false, &dev->profiles, error);

	if (!rc)
		rc = place_find(dev, want, &host, &found, error);
	if (!rc)
		rc = fork_look(want, error);
	if (!rc)
		rc = scan_open(&s, error);
	if (rc)
		return rc;
	dev->lib = s.lib;
	rc = choose(&s, want, found ? &host : NULL, &c, error);
	if (!rc && verbs_memlock_bad(error))
		rc = -FI_ENOMEM;
	if (!rc)
		rc = rails_open(dev, want, &c, error);
	scan_close(&s);
	if (!rc && all_software(dev))
		rc = profiles_read(want, true, &dev->profiles, error);
	if (!rc)
		rc = ooo_check(dev, want, error);
	return rc ? rc : atomics_check(dev, want, error);
}

int verbs_dev_open(const struct verbs_want *want, struct verbs_dev **out,
		   struct verbs_error *error)
{
	struct verbs_dev *dev = calloc(1, sizeof(*dev));
	int rc;

	if (!dev)
		return verbs_error_set(error, -FI_ENOMEM, "out of memory");
	pthread_mutex_init(&dev->looking, NULL);
	pthread_mutex_init(&dev->moving, NULL);
	rc = dev_open(dev, want, error);
	if (rc) {
		verbs_dev_close(dev);
		return rc;
	}
	*out = dev;
	return 0;
}

void verbs_dev_close(struct verbs_dev *dev)
{
	for (uint32_t i = 0; i < dev->rails; i++)
		rail_close(dev->lib, &dev->rail[i]);
	for (uint32_t i = 0; i < dev->rails; i++)
		if (!dev->rail[i].shared)
			dev->lib->close_device(dev->rail[i].context);
	pthread_mutex_destroy(&dev->looking);
	pthread_mutex_destroy(&dev->moving);
	free(dev);
}
