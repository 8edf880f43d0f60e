/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists of layers: what is accepted is within its limits, and a step over it has times;
 * what is refused is said, with a line of the text.
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "topo/sim/step.h"

static double cost(void *arg, enum step_op op, uint64_t bytes)
{
	(void)arg;
	fuzz_require(op < STEP_OPS && bytes > 0);
	return (double)bytes * 1e-9;
}

static void check_step(const struct layers *l, enum step_kind kind)
{
	const struct step_ask ask = {
		.kind = kind, .bucket = 1 << 20, .prefetch = 2, .lag = 1, .cost = cost};
	struct step_result r;

	fuzz_require(step_run(l, &ask, &r));
	fuzz_require(isfinite(r.time) && r.exposed >= 0 && r.efficiency >= 0);
	fuzz_require(r.time >= r.compute * (1 - 1e-9));
}

bool fuzz_one(const uint8_t *data, size_t size)
{
	struct layers l;
	struct fabric_error error;
	unsigned lines = 1;
	int rc;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	rc = layers_parse((const char *)data, size, &l, &error);
	fuzz_require(rc == 0 || rc == -EINVAL);
	if (rc) {
		fuzz_require(!l.layer && error.text[0] && error.line <= lines);
		return false;
	}
	fuzz_require(l.count > 0 && l.count <= LAYERS_MAX);
	for (uint32_t i = 0; i < l.count; i++)
		fuzz_require(l.layer[i].bytes <= LAYER_BYTES_MAX &&
			     l.layer[i].forward >= 0 && l.layer[i].forward <= 1000 &&
			     l.layer[i].backward >= 0 && l.layer[i].backward <= 1000);
	check_step(&l, STEP_BUCKETS);
	check_step(&l, STEP_SHARDS);
	layers_free(&l);
	return true;
}

size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	static const char *const seeds[] = {
		"weft-layers 1\nlayer a 4M forward=1.5ms backward=3ms times=12\n",
		"# x\nweft-layers 1\nlayer b 0 forward=0s backward=7ns\nlayer c 9 "
		"backward=1us forward=0.001ms # y\n",
	};
	size_t len;

	if (number >= sizeof(seeds) / sizeof(seeds[0]))
		return 0;
	len = strlen(seeds[number]);
	memcpy(room, seeds[number], len);
	return len;
}
