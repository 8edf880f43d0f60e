/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts that aren't here (tests/machine): what is read of them, how near devices are, and
 * what ranks get; also with files of /sys that hold anything. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topo/host/near.h"
#include "util/tap.h"

enum { RANKS = 32, WRONG = 300 };

static char folder[] = "/tmp/weft-host-XXXXXX";

static bool made(const char *kind)
{
	const char *top = getenv("WEFT_TOP_SRCDIR");
	char command[1024];

	snprintf(command, sizeof(command), "bash '%s/topo/host/tests/machine' %s '%s/%s'",
		 top ? top : ".", kind, folder, kind);
	return system(command) == 0;
}

static struct host *opened(const char *kind)
{
	char sys[256], why[HOST_WHY];
	struct host_options options = {.sys = sys};
	struct host *host = NULL;

	snprintf(sys, sizeof(sys), "%s/%s/sys", folder, kind);
	if (host_open(&options, &host, why) != 0)
		tap_diag("%s: %s", sys, why);
	return host;
}

/* Every index is one, no core is given twice while there are enough. */
static bool sane(const struct host *h, unsigned ranks, const struct host_share *share)
{
	bool good = true;

	for (unsigned i = 0; i < h->cpus; i++)
		good = good && h->cpu[i].core < (int)h->cores &&
		       (!i || h->cpu[i - 1].id < h->cpu[i].id);
	for (unsigned c = 0; c < h->cores; c++)
		good = good && h->core[c].node < (int)h->nodes &&
		       h->core[c].package < (int)h->packages &&
		       h->core[c].cache < (int)h->caches;
	for (unsigned i = 0; i < h->devices; i++)
		good = good && h->device[i].node < (int)h->nodes &&
		       host_device(h, h->device[i].kind, h->device[i].nth) == (int)i;
	for (unsigned i = 0; i < h->devices; i++)
		for (unsigned j = 0; j < i; j++)
			good = good && host_near(h, (int)i, (int)j) ==
					       host_near(h, (int)j, (int)i);
	for (unsigned r = 0; r < ranks; r++) {
		const struct host_share *s = &share[r];

		good = good && s->gpu < (int)h->devices && s->nic < (int)h->devices &&
		       s->core < (int)h->cores && s->progress < (int)h->cores;
		good = good && (s->nic < 0 || (h->device[s->nic].kind == HOST_NIC &&
					       h->device[s->nic].state != HOST_DOWN));
		for (unsigned q = 0; q < ranks; q++)
			good = good && (s->progress < 0 ||
					(share[q].core != s->progress &&
					 (q == r || share[q].progress != s->progress)));
	}
	return good;
}

static void test_server(void)
{
	struct host *h = opened("server");
	struct host_share share[RANKS];
	bool good = true;

	if (!tap_ok(h != NULL, "a server opens"))
		return;
	tap_is_int(h->packages, 2, "packages");
	tap_is_int(h->cores, 16, "cores");
	tap_is_int(h->caches, 2, "caches that cores share, not those of one core");
	tap_is_int(h->cache[1].cores, 8, "by how many");
	tap_is_int((int64_t)h->node[1].memory, INT64_C(64) << 30, "memory of a node");
	tap_is_int(host_count(h, HOST_GPU), 8, "GPUs, without the console's display");
	for (unsigned g = 0; g < 8; g++) {
		const int gpu = host_device(h, HOST_GPU, g),
			  nic = host_device(h, HOST_NIC, g + 1);

		good = good && host_near(h, gpu, nic) == HOST_SAME_SWITCH;
		for (unsigned n = 0; n < 9; n++)
			good = good &&
			       (n == g + 1 ||
				host_near(h, gpu, host_device(h, HOST_NIC, n)) ==
					((n < 5) == (g < 4) ? HOST_SAME_NODE : HOST_FAR));
	}
	tap_ok(good, "each GPU has one NIC at its switch, others at its node or far");
	tap_ok(host_near(h, host_device(h, HOST_NIC, 0),
			 host_device(h, HOST_DISPLAY, 0)) == HOST_SAME_BRIDGE,
	       "two ports of one bridge are no switch");
	tap_ok(!host_nic_chosen_from(h, host_device(h, HOST_NIC, 0)),
	       "the slow NIC is not chosen from");
	tap_ok(!host_nic_chosen_from(h, host_device(h, HOST_NIC, 8)),
	       "nor the one that is down");
	for (unsigned ranks = 1; ranks <= RANKS; ranks++)
		good = good && host_shares(h, ranks, share) && sane(h, ranks, share);
	tap_ok(good, "1 to %d ranks get what there is", RANKS);
	host_shares(h, 8, share);
	for (unsigned r = 0; r < 8; r++)
		good = good && share[r].core >= 0 && share[r].progress >= 0 &&
		       h->core[share[r].core].node == (r < 4 ? 0 : 1) &&
		       h->core[share[r].progress].node == (r < 4 ? 0 : 1);
	tap_ok(good, "8 ranks: cores of the node of their GPU");
	host_close(h);
}

static void test_container(void)
{
	struct host *h = opened("container");
	struct host_share share[4];

	if (!tap_ok(h != NULL, "a container opens"))
		return;
	tap_is_int(h->cpus, 4, "CPUs");
	tap_ok(!h->cores && !h->nodes && !h->packages, "nothing else is made up");
	tap_ok(h->gaps >= 4, "but named");
	tap_ok(host_shares(h, 4, share) && sane(h, 4, share) && share[0].core == -1 &&
		       share[0].nic == -1 && share[0].gpu == -1,
	       "ranks get nothing that isn't known");
	host_close(h);
}

/* xorshift64* */
static uint64_t chance(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

/* Something else into a file, of the kind that such files hold, or not. */
static void spoil(const char *path, uint64_t *seed)
{
	static const char *const words[] = {
		"",	 "-1",	"0-99999999", "3-1", "0-65535", "9999999999",
		"1,1,1", "4-7", "0x120000",   "-",   "0-3,",	"2,0"};
	FILE *f = fopen(path, "w");

	if (!f)
		return;
	if (chance(seed) % 3)
		fputs(words[chance(seed) % (sizeof(words) / sizeof(words[0]))], f);
	else
		for (unsigned n = (unsigned)(chance(seed) % 6000); n; n--)
			fputc((int)(chance(seed) & 0xff), f);
	fclose(f);
}

static void test_wrong_files(void)
{
	static const char *const files[] = {
		"devices/system/cpu/online",
		"devices/system/node/online",
		"devices/system/node/node0/cpulist",
		"devices/system/node/node0/meminfo",
		"devices/system/cpu/cpu1/topology/core_cpus_list",
		"devices/system/cpu/cpu2/topology/physical_package_id",
		"devices/system/cpu/cpu0/cache/index1/level",
		"devices/system/cpu/cpu0/cache/index1/shared_cpu_list",
		"devices/system/cpu/cpu0/cache/index1/size",
		"bus/pci/devices/0000:00:02.0/class",
		"bus/pci/devices/0000:00:02.0/vendor",
		"bus/pci/devices/0000:01:00.0/numa_node",
		"class/net/wlan0/operstate",
		"class/net/wlan0/type",
		"class/net/wlan0/speed"};
	const char *given = getenv("WEFT_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)getpid() * 7919 + 1;
	unsigned good = 0;

	tap_diag("WEFT_SEED=%" PRIu64, seed);
	seed = seed ? seed : 1;
	for (unsigned i = 0; i < WRONG; i++) {
		struct host_share share[8];
		char path[512], why[HOST_WHY];
		struct host_options options = {.sys = path};
		struct host *h = NULL;
		int rc;

		/* Good files again from time to time. */
		if (i % 30 == 0 && !made("laptop"))
			break;
		snprintf(path, sizeof(path), "%s/laptop/sys/%s", folder,
			 files[chance(&seed) % (sizeof(files) / sizeof(files[0]))]);
		spoil(path, &seed);
		snprintf(path, sizeof(path), "%s/laptop/sys", folder);
		rc = host_open(&options, &h, why);
		good += rc == 0 ? host_shares(h, 8, share) && sane(h, 8, share)
				: rc == -EINVAL && why[0];
		if (rc == 0)
			host_close(h);
	}
	tap_is_int(good, WRONG, "whatever files hold: refused, or nothing but what is");
}

int main(void)
{
	char command[128];

	if (!mkdtemp(folder) || !made("server") || !made("laptop") ||
	    !made("container")) {
		tap_ok(false, "hosts are made");
		return tap_done();
	}
	test_server();
	test_container();
	test_wrong_files();
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	tap_ok(system(command) == 0, "the folder goes");
	return tap_done();
}
