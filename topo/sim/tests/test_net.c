/* SPDX-License-Identifier: BSD-2-Clause */
/* Networks of maps: who meets where, by which links, and what is refused. */
#include "config.h"

#include <errno.h>

#include "topo/sim/net.h"
#include "util/tap.h"

#define HEAD "weft-fabric 1\nrail r0 80G\nrail r1 80G\n"

static struct sim_net *net_of(const char *text, const struct sim_net_options *o)
{
	struct fabric_map *map = NULL;
	struct fabric_error error;
	struct sim_net *net = NULL;

	if (fabric_map_parse(text, strlen(text), &map, &error) ||
	    sim_net_open(map, o, &net, &error))
		tap_bail("line %u: %s", error.line, error.text);
	fabric_map_free(map);
	return net;
}

static struct sim_path path_of(const struct sim_net *net, int32_t from, int32_t to)
{
	struct sim_path p;

	sim_net_path(net, from, to, &p);
	return p;
}

static int64_t ps_of(struct sim_path p)
{
	return (int64_t)(p.latency * 1e12 + 0.5);
}

/* Two buildings of two zones of two racks of two hosts of two ranks; 20 GB/s of a host.
 */
#define TREE                                                                   \
	HEAD "ranks 2\ngrid n[01-16] 2/2/2\ntier host latency=1us rate=800G\n" \
	     "tier rack latency=2us\n"                                         \
	     "tier zone latency=3us over=2\ntier building latency=4us\n"       \
	     "tier far latency=5us over=4 mesh\n"

static void test_tree(void)
{
	struct sim_net *net = net_of(TREE, &(struct sim_net_options){.ranks = 32});
	const struct sim_path host = path_of(net, 0, 1), rack = path_of(net, 0, 2),
			      zone = path_of(net, 0, 4), building = path_of(net, 0, 8),
			      far = path_of(net, 0, 16), back = path_of(net, 16, 0);

	tap_is_int(net->levels, 5, "five levels");
	tap_ok(host.level == 0 && host.links == 0 && host.most == 100e9 &&
		       ps_of(host) == 1000000,
	       "on a host: by its own network");
	tap_ok(rack.level == 1 && rack.links == 0 && rack.most == 10e9 &&
		       ps_of(rack) == 2000000,
	       "in a rack: a port is half of two rails");
	tap_ok(zone.level == 2 && zone.links == 2 && net->capacity[zone.link[0]] == 20e9,
	       "in a zone: up and down by links of half of what a rack has");
	tap_ok(building.level == 3 && building.links == 2,
	       "in a building: zones have what their racks bring, so only those count");
	tap_ok(far.level == 4 && far.links == 3 && ps_of(far) == 5000000 &&
		       net->capacity[far.link[2]] == 40e9,
	       "between buildings: racks' links, and one of a quarter between the two");
	tap_ok(back.links == far.links && back.link[2] != far.link[2],
	       "the way back is another link");
	sim_net_close(net);
}

/* By rails: the two ranks of a host are on different rails. */
static void test_rails(void)
{
	struct sim_net *net = net_of(HEAD "ranks 2\ngrid n[1-8] 1/2/2\n"
					  "tier rack latency=1us rails\n"
					  "tier zone latency=2us rails\n"
					  "tier building latency=3us\n",
				     &(struct sim_net_options){.ranks = 16});

	tap_is_int(path_of(net, 0, 2).level, 1, "the same rail meets in the rack");
	tap_is_int(path_of(net, 0, 4).level, 2, "and in the zone");
	tap_is_int(path_of(net, 0, 3).level, 3, "another one above");
	tap_is_int(path_of(net, 0, 1).level, 3, "also on one host");
	sim_net_close(net);
}

static void test_placement(void)
{
	struct sim_net_options o = {.ranks = 8, .placement = SIM_RAILS};
	struct sim_net *net = net_of(TREE, &o);
	bool good = true;
	uint64_t seen = 0;

	for (uint32_t r = 0; r < 8; r++)
		good = good && net->host[r] == r % 4;
	tap_ok(good && net->hosts == 4,
	       "rails: one rank of each host, then the next ones");
	sim_net_close(net);
	o = (struct sim_net_options){.ranks = 32, .placement = SIM_SCATTERED, .seed = 7};
	net = net_of(TREE, &o);
	good = true;
	for (uint32_t r = 0; r < 32; r++) {
		seen += UINT64_C(1) << net->host[r] * 2;
		good = good && net->host[r] == r / 2;
	}
	tap_ok(!good && seen == UINT64_C(0xaaaaaaaa),
	       "scattered: each place once, anywhere");
	sim_net_close(net);
}

static void test_slow(void)
{
	const struct sim_fault slow = {"n02", 0.25};
	struct sim_net *net = net_of(
		TREE,
		&(struct sim_net_options){.ranks = 32, .fault = &slow, .faults = 1});

	tap_ok(path_of(net, 0, 2).most == 2.5e9 && path_of(net, 2, 0).most == 2.5e9 &&
		       path_of(net, 0, 4).most == 10e9,
	       "a slow host's ports are the narrow ones");
	tap_ok(net->capacity[path_of(net, 0, 4).link[0]] == 20e9,
	       "and its rack's links are as wide as before");
	sim_net_close(net);
}

static struct sim_net *faulty(const char *text, int32_t ranks, const char *name,
			      double part)
{
	const struct sim_fault f = {name, part};

	return net_of(text, &(struct sim_net_options){
				    .ranks = ranks, .fault = &f, .faults = 1});
}

static void test_slow_links(void)
{
	struct sim_net *net = faulty(TREE, 32, "b1/z1/k2", 0.25);
	struct sim_path p = path_of(net, 4, 0);

	tap_ok(net->capacity[p.link[0]] == 5e9 && net->capacity[p.link[1]] == 20e9,
	       "a slow rack: what joins it to its zone");
	p = path_of(net, 0, 4);
	tap_ok(net->capacity[p.link[0]] == 20e9 && net->capacity[p.link[1]] == 5e9,
	       "both ways");
	sim_net_close(net);
	/* Zones are as wide as their racks until they are slow. */
	net = faulty(TREE, 32, "b2/z1/-", 0.25);
	tap_is_int(path_of(net, 16, 24).links, 3, "a slow zone has a link then");
	tap_is_int(path_of(net, 0, 8).links, 2, "others have none");
	sim_net_close(net);
	net = faulty(TREE, 32, "b2/-/-:b1/-/-", 0.5);
	p = path_of(net, 0, 16);
	tap_ok(net->capacity[p.link[2]] == 20e9, "a slow link between two buildings");
	sim_net_close(net);
	net = faulty(TREE, 32, "n03:r1", 0.5);
	tap_ok(path_of(net, 4, 0).most == 7.5e9 && path_of(net, 2, 0).most == 10e9,
	       "a slow rail: a quarter of what both have is missing");
	sim_net_close(net);
}

/* Four buildings, pair by pair. */
#define MESH                                              \
	HEAD "grid n[1-8] 4/1/1\ntier rack latency=1us\n" \
	     "tier far latency=5us rate=80G mesh\n"

static void test_dead_mesh(void)
{
	struct sim_net *net = faulty(MESH, 8, "b1/z1/k1:b3/z1/k1", 0);
	bool third = true, alive = true;
	uint64_t ways = 0;

	tap_is_int(path_of(net, 0, 2).links, 1, "who is not concerned goes as before");
	for (int32_t a = 0; a < 2; a++) {
		for (int32_t z = 4; z < 6; z++) {
			const struct sim_path p = path_of(net, a, z),
					      q = path_of(net, z, a);

			third = third && p.links == 2 && q.links == 2 &&
				ps_of(p) == 10000000 && ps_of(q) == 10000000;
			for (unsigned i = 0; i < net->level[2].deads; i++)
				alive = alive && p.link[0] != net->level[2].dead[i] &&
					p.link[1] != net->level[2].dead[i];
			ways |= UINT64_C(1) << p.link[0];
		}
	}
	tap_ok(third, "a dead link: by a third rack, later by as much again");
	tap_ok(alive && net->level[2].deads == 2, "and by no link that is dead");
	tap_ok(ways & (ways - 1), "ranks differ in which one");
	sim_net_close(net);
}

static void test_dead(void)
{
	static const char rails[] = HEAD "ranks 2\ngrid n[1-8] 1/2/2\n"
					 "tier rack latency=1us rails\n"
					 "tier zone latency=2us rails\n"
					 "tier building latency=3us over=2\n";
	struct sim_net *net = faulty(TREE, 30, "n02", 0);
	bool good = true;
	struct sim_path p;

	for (uint32_t r = 0; r < 30; r++)
		good = good && net->host[r] == (r < 2 ? 0 : r / 2 + 1);
	tap_ok(good, "a dead host has no ranks, the next one has them");
	tap_ok(net->capacity[path_of(net, 0, 4).link[0]] == 20e9,
	       "and its rack's links are as wide as before");
	sim_net_close(net);

	net = faulty(rails, 16, "n1:r1", 0);
	p = path_of(net, 1, 2);
	tap_ok(p.level == 1 && p.most == 5e9,
	       "a dead rail: its rank is on the other, and they share it");
	tap_is_int(path_of(net, 1, 3).level, 3, "to those of its old rail it is far");
	sim_net_close(net);

	net = faulty(rails, 16, "b1/z1/k1:r1", 0);
	tap_ok(path_of(net, 1, 2).level == 1 && path_of(net, 3, 5).level == 3,
	       "a rack's dead rail is that of all its hosts");
	sim_net_close(net);

	net = faulty(TREE, 4, "b1/z1/k1", 0);
	tap_is_int(net->ranks, 4, "a dead link that nobody needs");
	sim_net_close(net);
}

static void refused(const char *text, struct sim_net_options o, unsigned line,
		    const char *words)
{
	struct fabric_map *map = NULL;
	struct fabric_error error;
	struct sim_net *net = NULL;
	int rc;

	if (fabric_map_parse(text, strlen(text), &map, &error))
		tap_bail("line %u: %s", error.line, error.text);
	rc = sim_net_open(map, &o, &net, &error);
	if (!tap_ok(rc == -EINVAL && !net && error.line == line &&
			    strstr(error.text, words),
		    "line %u: %s", line, words))
		tap_diag("rc %d, line %u: %s", rc, error.line, error.text);
	fabric_map_free(map);
}

/* ---- torus ---------------------------------------------------------------------------
 */

#define TORUS                        \
	HEAD "grid n[01-60] 1/1/1\n" \
	     "tier rack latency=1us rate=100G torus=5x4x3\n"

/* Where the links of a way lead to; UINT32_MAX: they do not follow each other. */
static uint32_t walk(const struct sim_path *p, uint32_t at, const bool *dead)
{
	static const uint32_t dim[] = {5, 4, 3}, stride[] = {1, 5, 20};

	for (unsigned i = 0; i < p->links; i++) {
		const uint32_t way = p->link[i] / 2 % 3, down = p->link[i] % 2;
		uint32_t k = at / stride[way] % dim[way];

		if (p->link[i] / 6 != at)
			return UINT32_MAX;
		at -= k * stride[way];
		k = (k + (down ? dim[way] - 1 : 1)) % dim[way];
		at += k * stride[way];
		if (dead[at])
			return UINT32_MAX;
	}
	return at;
}

static uint32_t around(uint32_t a, uint32_t z, uint32_t n)
{
	const uint32_t up = (z + n - a) % n;

	return up < n - up ? up : n - up;
}

static uint32_t apart(uint32_t a, uint32_t z)
{
	return around(a % 5, z % 5, 5) + around(a / 5 % 4, z / 5 % 4, 4) +
	       around(a / 20, z / 20, 3);
}

/* Every two of a network whose ranks are on hosts by number. */
static void pairs_look(const struct sim_net *net, const bool *dead, bool shortest,
		       const char *what)
{
	unsigned wrong = 0, longer = 0;

	for (int32_t a = 0; a < net->ranks; a++) {
		for (int32_t z = 0; z < net->ranks; z++) {
			struct sim_path p = {.links = 0};
			const uint32_t far = apart(net->host[a], net->host[z]);

			if (a != z)
				p = path_of(net, a, z);
			wrong += walk(&p, net->host[a], dead) != net->host[z] ||
				 p.links < far ||
				 (a != z && ps_of(p) != (int64_t)p.links * 1000000);
			longer += p.links > far;
		}
	}
	tap_ok(!wrong && (longer > 0) == !shortest, "%s: %u wrong, %u longer", what,
	       wrong, longer);
}

static void test_torus(void)
{
	const struct sim_fault holes[] = {{"n01", 0}, {"n02", 0}, {"n07", 0}, {"n33", 0}};
	bool dead[60] = {false};
	struct sim_net *net = net_of(TORUS, &(struct sim_net_options){.ranks = 60});
	struct sim_path p = path_of(net, 0, 1);

	pairs_look(net, dead, true, "the shortest ways");
	tap_ok(net->capacity[p.link[0]] == 12.5e9, "links have the rate that is said");
	tap_ok(path_of(net, 0, 10).link[0] % 6 == 2 &&
		       path_of(net, 5, 15).link[0] % 6 == 3,
	       "half way round, places differ in which way");
	sim_net_close(net);
	net = net_of(TORUS,
		     &(struct sim_net_options){.ranks = 56, .fault = holes, .faults = 4});
	dead[0] = dead[1] = dead[6] = dead[32] = true;
	pairs_look(net, dead, false, "around dead hosts");
	sim_net_close(net);
	net = faulty(TORUS, 60, "n03", 0.5);
	tap_ok(path_of(net, 2, 3).most == 10e9, "slow ports are no slow links");
	sim_net_close(net);
}

/* Switched: the torus is that of the job, whoever is dead. */
static void test_optical(void)
{
	static const char map[] = HEAD "grid n[01-60] 1/1/1\ntier rack latency=1us "
				       "rate=100G torus=5x4x3 optical=10ms\n";
	const struct sim_fault holes[] = {{"n01", 0}, {"n07", 0}};
	struct sim_net *net = net_of(map, &(struct sim_net_options){.ranks = 60});

	tap_ok(sim_net_setup(net) == 0.01, "it takes its time");
	tap_is_int(path_of(net, 0, 59).links, 3, "the map's shape");
	sim_net_close(net);
	net = net_of(map,
		     &(struct sim_net_options){
			     .ranks = 32, .fault = holes, .faults = 2, .shape = {4, 8}});
	tap_is_int(net->host[0], 1, "dead hosts are left out");
	tap_ok(path_of(net, 0, 3).links == 1 && path_of(net, 0, 28).links == 1 &&
		       path_of(net, 0, 18).links == 6,
	       "the job's own shape, round both ways");
	sim_net_close(net);
}

static void fault_refused(const char *text, int32_t ranks, const char *name, double part,
			  unsigned line, const char *words)
{
	const struct sim_fault f = {name, part};

	refused(text, (struct sim_net_options){.ranks = ranks, .fault = &f, .faults = 1},
		line, words);
}

static void test_faults_refused(void)
{
	static const char two[] = HEAD "grid n[1-4] 2/1/1\ntier rack latency=1us\n"
				       "tier far latency=5us rate=80G mesh\n";
	static const char *const no_names[] = {
		"n01:",	      ":",     "",	 "b1/z1",
		"b1/z1/k1/x", "-/-/-", "/z1/k1", "b1/-/-:b1/z1/-"};

	for (size_t i = 0; i < sizeof(no_names) / sizeof(no_names[0]); i++)
		fault_refused(TREE, 32, no_names[i], 0.5, 0,
			      i == 0 ? "no rail \"\"" : "names nothing");
	fault_refused(TREE, 32, "n01:r9", 0.5, 0, "no rail \"r9\"");
	fault_refused(TREE, 32, "n99", 0, 0, "\"n99\" is to be slow or dead");
	fault_refused(TREE, 32, "n01", 1.5, 0, "1.5 of its rate");
	fault_refused(TREE, 32, "n01", -1, 0, "-1 of its rate");
	fault_refused(TREE, 32, "b9/z1/-", 0.5, 0, "no host of the map is there");
	fault_refused(TREE, 32, "b1/z1/-:b1/z2/-", 0, 0, "tier building has a switch");
	fault_refused(TREE, 32, "b1/z1/k1:r0", 0.5, 0, "one link for all rails");
	fault_refused(MESH, 8, "b1/z1/-", 0.5, 0,
		      "no tier of the map joins zones, "
		      "so that it has no links; tier far joins racks");
	fault_refused(TREE, 32, "n02", 0, 0, "32 ranks, but 15 hosts of 2 ranks");
	fault_refused(TREE, 32, "b1/z2/k1", 0, 0,
		      "no other way to the 4 ranks that are "
		      "there (the first is 8)");
	fault_refused(two, 4, "b1/z1/k1:b2/z1/k1", 0, 0,
		      "no third group joins rank 0 to "
		      "rank 2");
	fault_refused(HEAD "host a b1/z1/k1 r0=x\nhost b b1/z1/k1 r0=x\n"
			   "tier rack latency=1us\n",
		      2, "b:r1", 0, 0, "no host there is on rail r1");
	fault_refused(HEAD "host a b1/z1/k1 r0=x\nhost b b1/z1/k1 r0=x\n"
			   "tier rack latency=1us\n",
		      2, "b:r0", 0, 5, "host b has no rail left");
	/* Nothing above joins rails: who lost one is out of reach. */
	fault_refused(HEAD "ranks 1\nhost a b1/z1/k1 r0=x r1=y\nhost b b1/z1/k1 r0=x "
			   "r1=y\ntier rack latency=1us rails\n",
		      2, "a:r0", 0, 6, "the highest tier is by rails");
}

static void test_torus_refused(void)
{
	static const char optical[] = HEAD "grid n[01-60] 1/2/1\ntier rack latency=1us "
					   "rate=100G torus=5x3x2 optical=10ms\n"
					   "tier zone latency=2us\n";
	const struct sim_fault holes[] = {{"n02", 0}, {"n04", 0}, {"n05", 0}, {"n07", 0}};
	const struct sim_net_options parted = {.ranks = 4, .fault = holes, .faults = 4};

	refused(HEAD "grid n[01-30] 1/1/1\ntier rack latency=1us rate=1G torus=4x4\n",
		(struct sim_net_options){.ranks = 2}, 5,
		"has 16 places, but it joins 30");
	refused(TORUS, (struct sim_net_options){.ranks = 2, .shape = {2}}, 0,
		"a shape is for an optical torus");
	refused(optical, (struct sim_net_options){.ranks = 20, .shape = {4, 4}}, 5,
		"has 16 places, but tier rack joins 20");
	refused(optical, (struct sim_net_options){.ranks = 40, .shape = {4, 10}}, 5,
		"ranks 0 and 30 are in two places");
	refused(HEAD "grid n[01-16] 1/1/1\ntier rack latency=1us rate=1G torus=16\n",
		parted, 5, "dead hosts part the torus");
	fault_refused(HEAD "grid n[01-16] 1/1/4\ntier rack latency=1us\n"
			   "tier zone latency=1us rate=1G torus=4\n",
		      16, "b1/z1/k1:b1/z1/k2", 0.5, 0,
		      "a torus, whose links have no names");
}

/* Hosts that name their rails are on those. */
static void test_named_rails(void)
{
	struct sim_net *net = net_of(HEAD "host a b1/z1/k1 r1=x\nhost b b1/z1/k1 r0=x\n"
					  "host c b1/z1/k1 r1=x\n"
					  "tier rack latency=1us rails\n"
					  "tier zone latency=2us\n",
				     &(struct sim_net_options){.ranks = 3});

	tap_ok(path_of(net, 0, 2).level == 1 && path_of(net, 0, 1).level == 2,
	       "the second rail alone is not the first");
	sim_net_close(net);
}

static void test_refused(void)
{
	const struct sim_net_options two = {.ranks = 2}, many = {.ranks = 33};
	const struct sim_fault slow = {"nobody", 0.5};

	refused(TREE, many, 0, "33 ranks, but the map has 16 hosts of 2 ranks, for 32");
	refused(TREE, (struct sim_net_options){.ranks = 0}, 0, "0 ranks");
	refused(TREE, (struct sim_net_options){.ranks = 2, .fault = &slow, .faults = 1},
		0, "\"nobody\" is to be slow");
	refused("weft-fabric 1\ngrid n[1-2] 1/1/1\ntier rack latency=1us\n", two, 2,
		"its rails is nothing");
	refused(HEAD "host a b1/z1/k1\nhost b -/-/-\ntier far latency=1us\n", two, 5,
		"host b is out of reach: its building is not known");
	refused(HEAD "host a b1/z1/k1\nhost b b2/z1/k1\ntier rack latency=1us\n"
		     "tier building latency=1us\n",
		two, 5, "no tier joins buildings");
	refused(HEAD "host a b1/z1/k1\nhost b b1/z1/k2\ntier rack latency=1us\n", two, 5,
		"no tier joins racks");
	refused(HEAD "host a b1/z1/k1\nhost b b1/z1/k1\n", two, 5, "no tier joins hosts");
	refused(HEAD "host a b1/z1/-\nhost b b1/z1/-\ntier rack latency=1us\n", two, 5,
		"no tier joins racks");
	refused(HEAD "grid a[1-2] 1/1/1\ntier rack latency=1us within=far\n"
		     "tier zone latency=1us within=far\ntier far latency=1us\n",
		two, 6, "tier zone is out of reach: no other is within it");
	refused(HEAD "ranks 2\ngrid a[1-2] 1/1/1\ntier far latency=1us rails\n", two, 5,
		"the highest tier is by rails");
}

int main(void)
{
	test_tree();
	test_rails();
	test_placement();
	test_slow();
	test_slow_links();
	test_dead_mesh();
	test_dead();
	test_torus();
	test_optical();
	test_named_rails();
	test_refused();
	test_faults_refused();
	test_torus_refused();
	return tap_done();
}
