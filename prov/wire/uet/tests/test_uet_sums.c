/* SPDX-License-Identifier: BSD-2-Clause */
/* Which datagrams have a checksum: all that leave a host, and who may leave it out. */
#include "config.h"

#include "prov/wire/uet/tests/uet_side.h"
#include "prov/wire/uet/uet_crc.h"
#include "prov/wire/uet/uet_sums.h"

static const uint8_t here[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
static const uint8_t there[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2};

static void test_good(void)
{
	uint8_t bytes[64 + UET_SUMS_BYTES];
	struct uet_sums sums = {0};
	struct be32 sum;
	unsigned missed = 0;

	for (unsigned i = 0; i < 64; i++)
		bytes[i] = (uint8_t)(3 * i);
	sum = be32_of(uet_crc(0, bytes, 64));
	memcpy(bytes + 64, &sum, sizeof(sum));
	tap_ok(uet_sums_good(&sums, there, bytes, sizeof(bytes)),
	       "a checksum that is right");
	for (unsigned bit = 0; bit < 8 * sizeof(bytes); bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		missed += uet_sums_good(&sums, there, bytes, sizeof(bytes));
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	tap_is_int(missed, 0, "no bit can be another");
	tap_ok(!uet_sums_good(&sums, there, bytes, UET_SUMS_BYTES) &&
		       !uet_sums_good(&sums, there, bytes, 0),
	       "a checksum of nothing is none");
	memset(bytes + 64, 0, UET_SUMS_BYTES);
	tap_ok(!uet_sums_good(&sums, here, bytes, sizeof(bytes)),
	       "none at all isn't right while nobody said so");
	tap_ok(uet_sums_own(&sums, here) && uet_sums_own(&sums, here) && sums.count == 1,
	       "an address of this host's, once");
	tap_ok(uet_sums_good(&sums, here, bytes, sizeof(bytes)),
	       "what comes from there needs none");
	tap_ok(!uet_sums_good(&sums, there, bytes, sizeof(bytes)),
	       "but what comes from elsewhere does");
	memcpy(bytes + 64, "\1\2\3\4", UET_SUMS_BYTES);
	tap_ok(!uet_sums_good(&sums, here, bytes, sizeof(bytes)),
	       "and one that is there is looked at");
}

static void test_full(void)
{
	struct uet_sums sums = {0};
	uint8_t host[16] = {0xfd};
	bool all = true;

	for (unsigned i = 0; i < UET_SUMS_OWN; i++) {
		host[15] = (uint8_t)i;
		all &= uet_sums_own(&sums, host);
	}
	tap_ok(all, "several addresses");
	tap_ok(!uet_sums_own(&sums, here) && uet_sums_own(&sums, host),
	       "one more has no place; those that are there stay");
}

static void test_links(uint64_t setting, bool bare)
{
	struct prov_params *params = (struct prov_params *)(uintptr_t)prov_params();
	uint64_t usual = params->uet_checksum;
	static struct side a, b;

	params->uet_checksum = setting;
	side_open(&a, NULL);
	side_open(&b, NULL);
	tap_ok(both_dial(&a, &b, &b.ep->base.addr), "two endpoints of one host");
	params->uet_checksum = usual;
	tap_ok(a.link && b.link && a.link->bare == bare && b.link->bare == bare,
	       "both %s", bare ? "leave checksums out" : "compute them");
	tap_ok(both_talk(&a, &b, 100), "everything arrives");
	tap_ok(!side_garbled(&a) && !side_garbled(&b),
	       "and nothing is taken for garbled");
	side_network(&a, "seed=5,corrupt=0.2");
	tap_ok(both_talk(&a, &b, 100), "also what a network changes, again");
	tap_ok(side_garbled(&b) > 0, "since with such a network there is a checksum");
	side_close(&a);
	side_close(&b);
}

int main(void)
{
	test_good();
	test_full();
	test_links(PROV_CHECKSUM_AUTO, true);
	test_links(PROV_CHECKSUM_ALWAYS, false);
	return tap_done();
}
