/* SPDX-License-Identifier: BSD-2-Clause */
/* The emulated devices' file: what is read, what is refused and with which words; valid
 * ones changed at random. The seed is printed; give it as the first argument. */
#include "config.h"

#include <time.h>

#include "fabtests/emuverbs/setup.h"
#include "util/tap.h"

#define HEAD "emuverbs 1\ndevice emu0 gid=10.0.0.1\n"

static const char whole[] = "# two devices\n"
			    "emuverbs 1\n"
			    "seed 7\n"
			    "device emu0 gid=10.0.0.1 delivery=mixed max_qp=64 mtu=1024\n"
			    "device emu_1 gid=10.0.0.2 state=down atomics=none # later\n"
			    "fault emu0 10 lose-immediate\n"
			    "fault emu_1 1 port-up\n"
			    "fault emu0 10 deny\n"
			    "fault emu0 11 port-down for=1s lost=up\n"
			    "fault emu_1 every=100ms kill-qp host=2\n"
			    "fault emu_1 each=7 stall-qp for=20";

static void test_whole(void)
{
	struct emu_setup_error error;
	struct emu_setup c;

	if (!emu_setup_parse(whole, strlen(whole), &c, &error))
		tap_bail("line %u: %s", error.line, error.text);
	tap_is_int((int64_t)c.seed, 7, "the seed");
	tap_is_int(c.devices, 2, "two devices");
	tap_is_str(c.device[1].name, "emu_1", "their names");
	tap_ok(c.device[1].addresses == 1 && c.device[1].gid[0].use == EMU_GID_GOOD,
	       "an address each");
	tap_is_mem(c.device[1].gid[0].raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\2", 16,
		   "which is that of the file, mapped");
	tap_ok(c.device[0].delivery == EMU_MIXED && c.device[1].delivery == EMU_ORDERED,
	       "what is said of the one");
	tap_ok(c.device[0].down == 0 && c.device[1].down == 1 && c.device[1].atomics == 0,
	       "and of the other");
	tap_ok(c.device[0].max_qp == 64 && c.device[0].mtu == 1024, "numbers");
	tap_ok(c.device[0].max_sge == 16 && c.device[1].max_qp == 4096,
	       "what is not said is as usual");
	tap_is_int(c.faults, 6, "six faults");
	tap_ok(c.fault[0].device == 0 && c.fault[0].time == 10 &&
		       c.fault[0].action == EMU_LOSE_IMMEDIATE &&
		       c.fault[1].device == 1 && c.fault[2].action == EMU_DENY &&
		       c.fault[3].time == 11,
	       "in order");
	tap_ok(c.fault[3].lasts == 1000000000 && c.fault[4].when == EMU_EVERY &&
		       c.fault[4].time == 100000000 && c.fault[4].host == 2 &&
		       c.fault[5].when == EMU_EACH && c.fault[5].lasts_segments == 20,
	       "by count, by clock, for how long and where");
	tap_ok(c.fault[3].lost == EMU_LOST_UP && c.fault[1].lost == 0,
	       "and what nobody hears of");
	tap_is_str(emu_action_name(EMU_LOSE_ACK), "lose-ack", "faults have names");
	tap_is_str(emu_action_name(EMU_ACTIONS), "?", "others have not");
}

static void test_addresses(void)
{
	static const char text[] =
		"emuverbs 1\n"
		"device emu0 gid=fd00::1 gid=fe80::7,dead gid=10.0.0.1,v1 "
		"gid=2001:db8::2,empty\n";
	static const uint8_t use[] = {EMU_GID_GOOD, EMU_GID_DEAD, EMU_GID_V1,
				      EMU_GID_EMPTY};
	struct emu_setup_error error;
	struct emu_setup c;

	if (!emu_setup_parse(text, strlen(text), &c, &error))
		tap_bail("line %u: %s", error.line, error.text);
	tap_is_int(c.device[0].addresses, 4, "four addresses of a device");
	tap_is_mem(c.device[0].gid[0].raw, "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16,
		   "IPv6 ones as well");
	for (unsigned i = 0; i < 4; i++)
		tap_ok(c.device[0].gid[i].use == use[i], "what number %u is good for", i);
}

/* Those that run knows by name, where the tree is. */
static void test_named(void)
{
	static const char *const names[] = {"1x1", "1x16", "2x16-ooo", "4-faults",
					    "2x4-ipv6"};
	const char *top = getenv("WEFT_TOP_SRCDIR");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct emu_setup_error error = {0};
		char path[4096], text[8192];
		struct emu_setup c;
		size_t len;
		FILE *f;

		if (!top) {
			tap_skip(1, "WEFT_TOP_SRCDIR is not set");
			continue;
		}
		snprintf(path, sizeof(path), "%s/fabtests/emuverbs/setups/%s", top,
			 names[i]);
		f = fopen(path, "r");
		len = f ? fread(text, 1, sizeof(text), f) : 0;
		if (f)
			fclose(f);
		if (!tap_ok(emu_setup_parse(text, len, &c, &error), "%s", names[i]))
			tap_diag("line %u: %s", error.line, error.text);
	}
}

static void refused(const char *text, unsigned line, const char *words)
{
	struct emu_setup_error error;
	struct emu_setup c;

	if (!tap_ok(!emu_setup_parse(text, strlen(text), &c, &error) &&
			    error.line == line && strstr(error.text, words),
		    "line %u: %s", line, words))
		tap_diag("line %u: %s", error.line, error.text);
}

static void test_refused(void)
{
	refused("", 0, "it has no device");
	refused("emuverbs 1\n", 0, "it has no device");
	refused("device a gid=1.2.3.4\n", 1, "the first line is \"emuverbs 1\"");
	refused("emuverbs 2\n", 1, "the first line is");
	refused(HEAD "devices\n", 3, "seed, none, device or fault");
	refused(HEAD "none\n", 3, "there is device emu0");
	refused("emuverbs 1\nnone\ndevice emu0 gid=1.2.3.4\n", 3, "there is none");
	refused("emuverbs 1\nnone at all\n", 2, "nothing comes after none");
	refused(HEAD "seed\n", 3, "up to 9 digits");
	refused(HEAD "seed 1 2\n", 3, "up to 9 digits");
	refused(HEAD "device EMU gid=1.2.3.4\n", 3, "small letters");
	refused(HEAD "device emu0 gid=1.2.3.4\n", 3, "there already");
	refused(HEAD "device b\n", 3, "a gid of its own");
	refused(HEAD "device b gid=10.0.0.1\n", 3, "a gid of its own");
	refused(HEAD "device b gid=10.0.0\n", 3, "an IPv4 or IPv6 address");
	refused(HEAD "device b gid=10.0.0.256\n", 3, "an IPv4 or IPv6 address");
	refused(HEAD "device b gid=10.0.0.1.2\n", 3, "an IPv4 or IPv6 address");
	refused(HEAD "device b gid=fd00:::1\n", 3, "an IPv4 or IPv6 address");
	refused(HEAD "device b gid=::\n", 3, "an IPv4 or IPv6 address");
	refused(HEAD "device b gid=0.0.0.0\n", 3, "an IPv4 or IPv6 address");
	refused(HEAD "device b gid=ff02::1\n", 3, "an IPv4 or IPv6 address");
	refused(HEAD "device b gid=1111:2222:3333:4444:5555:6666:7777:8888:9999\n", 3,
		"an IPv4 or IPv6 address");
	refused(HEAD "device b gid=fd00::1,v3\n", 3, "v1, dead or empty");
	refused(HEAD "device b gid=fd00::1,\n", 3, "v1, dead or empty");
	refused(HEAD "device b gid=fd00::1,empty\n", 3, "a gid of its own");
	refused(HEAD "device b gid=1.2.3.4 gid=::ffff:1.2.3.4\n", 3,
		"the same gid twice");
	refused(HEAD "device b gid=1.2.3.4 gid=10.0.0.1\n", 3, "a gid of its own");
	refused(HEAD "device b gid=fd00::a00:1\n", 3, "another end than others' first");
	refused(HEAD "device b gid=1.1.1.1 gid=1.1.1.2 gid=1.1.1.3 gid=1.1.1.4 "
		     "gid=1.1.1.5 gid=1.1.1.6 gid=1.1.1.7 gid=1.1.1.8\n",
		3, "at most 7");
	refused(HEAD "device b max_qps=1\n", 3, "no KEY=VALUE");
	refused(HEAD "device b max_qp\n", 3, "max_qp=: it may be 1 to 16384");
	refused(HEAD "device b max_qp=0\n", 3, "1 to 16384");
	refused(HEAD "device b max_qp=-1\n", 3, "1 to 16384");
	refused(HEAD "device b delivery=any\n", 3, "ordered, mixed or choice");
	refused(HEAD "device b gid=1.2.3.4 port=2\n", 3, "port=2: it has 1");
	refused(HEAD "device b link=token\n", 3, "it may be ethernet or infiniband");
	refused(HEAD "device b mtu=1500 gid=1.2.3.4\n", 3, "256, 512, 1024");
	refused(HEAD "fault emu1 1 deny\n", 3, "\"emu1\" is not known");
	refused(HEAD "fault emu0 deny\n", 3, "no number of segments");
	refused(HEAD "fault emu0 1 explode\n", 3, "they are lose-segment, lose-ack");
	refused(HEAD "fault emu0 1 deny twice\n", 3, "\"twice\": it may be host=");
	refused(HEAD "fault emu0 1 deny for=1s\n", 3, "of port-down and stall-qp");
	refused(HEAD "fault emu0 1 port-down for=20\n", 3, "of stall-qp by count");
	refused(HEAD "fault emu0 1 port-down lost=all\n", 3, "lost=down, up or both");
	refused(HEAD "fault emu0 1 deny lost=up\n", 3, "of ports lost=");
	refused(HEAD "fault emu0 1 stall-qp\n", 3, "for how long");
	refused(HEAD "fault emu0 every=0s kill-qp\n", 3, "as in 100ms or 2s");
	refused(HEAD "fault emu0 at=7 kill-qp\n", 3, "as in 100ms or 2s");
	refused(HEAD "fault emu0 each=0 kill-qp\n", 3, "no number of segments");
	refused(HEAD "fault emu0 2 deny\nfault emu0 1 deny\n", 4, "write them in order");
}

static void test_limits(void)
{
	char text[8192];
	size_t at = (size_t)snprintf(text, sizeof(text), "emuverbs 1\n");

	for (unsigned i = 0; i <= EMU_DEVICES_MAX; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "device d%u gid=1.2.3.%u\n", i, i);
	refused(text, EMU_DEVICES_MAX + 2, "one too many");
	at = (size_t)snprintf(text, sizeof(text), HEAD);
	for (unsigned i = 0; i <= EMU_FAULTS_MAX; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "fault emu0 %u deny\n", i);
	refused(text, EMU_FAULTS_MAX + 3, "more than 256 faults");
}

/* What is accepted is within its limits; in memory of exactly that size. */
static bool one(const char *text, size_t len)
{
	struct emu_setup_error error;
	char *exact = malloc(len ? len : 1);
	struct emu_setup c;
	bool good, right = true;

	if (!exact)
		tap_bail("out of memory");
	memcpy(exact, text, len);
	good = emu_setup_parse(exact, len, &c, &error);
	free(exact);
	if (!good)
		return error.text[0] != '\0';
	for (unsigned i = 0; i < c.devices; i++)
		for (size_t k = 0; k < emu_setup_key_count; k++) {
			const struct emu_setup_key *key = &emu_setup_keys[k];
			uint64_t v;

			memcpy(&v, (char *)&c.device[i] + key->offset, sizeof(v));
			right = right && v >= key->min && v <= key->max;
		}
	for (unsigned i = 0; i < c.devices; i++)
		right = right && c.device[i].addresses > 0 &&
			c.device[i].addresses <= EMU_GIDS_MAX;
	for (unsigned i = 0; i < c.faults; i++)
		right = right && c.fault[i].device < c.devices &&
			c.fault[i].action < EMU_ACTIONS;
	return right && c.devices > 0;
}

static void test_changed(uint64_t seed)
{
	uint64_t state = seed * 2 + 1;
	unsigned wrong = 0, inputs = tap_short() ? 5000 : 50000;

	for (unsigned i = 0; i < inputs; i++) {
		size_t len = strlen(whole);
		char text[sizeof(whole)];

		memcpy(text, whole, sizeof(whole));
		for (unsigned k = 0; k < 3; k++) {
			state ^= state >> 12;
			state ^= state << 25;
			state ^= state >> 27;
			text[state % len] = whole[(state >> 20) % len];
			if (state >> 60 == 0)
				len = 1 + (state >> 30) % len;
		}
		wrong += !one(text, len);
	}
	tap_ok(wrong == 0, "%u changed files: taken within limits, or refused with words",
	       inputs);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);

	tap_diag("seed %" PRIu64, seed);
	test_whole();
	test_addresses();
	test_named();
	test_refused();
	test_limits();
	test_changed(seed);
	return tap_done();
}
