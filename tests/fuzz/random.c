/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzz target as a plain test: the corpus in the tree, its valid messages, then changed
 * ones. The seed is printed; give it as the first argument to see the same inputs again.
 */
#include "config.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/fuzz/fuzz.h"
#include "util/tap.h"

#define INPUTS	     200000
#define INPUTS_SHORT 20000

/* xorshift64*: small, and the same everywhere. */
static uint64_t draw(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

/* Values that lie at the edges of what a field can hold. */
static uint8_t edge_byte(uint64_t *state)
{
	static const uint8_t edge[] = {0x00, 0x01, 0x7f, 0x80, 0xff};

	return edge[draw(state) % sizeof(edge)];
}

static size_t change(uint64_t *state, uint8_t *bytes, size_t len)
{
	unsigned changes = (unsigned)(draw(state) % 4);

	for (unsigned i = 0; i < changes && len > 0; i++) {
		size_t at = draw(state) % len;

		switch (draw(state) % 5) {
		case 0:
			bytes[at] ^= (uint8_t)(1u << draw(state) % 8);
			break;
		case 1:
			bytes[at] = edge_byte(state);
			break;
		case 2:
			memset(bytes + at, edge_byte(state), len - at < 8 ? len - at : 8);
			break;
		case 3:
			len = at;
			break;
		default:
			for (size_t n = draw(state) % 16; n > 0 && len < FUZZ_ROOM; n--)
				bytes[len++] = (uint8_t)draw(state);
		}
	}
	return len;
}

/* In memory of exactly that size. */
static bool one(const uint8_t *bytes, size_t len)
{
	uint8_t *exact = malloc(len ? len : 1);
	bool accepted;

	if (!exact)
		tap_bail("out of memory");
	memcpy(exact, bytes, len);
	accepted = fuzz_one(exact, len);
	free(exact);
	return accepted;
}

static void file_try(const char *dir, const char *name)
{
	uint8_t bytes[FUZZ_ROOM];
	char path[4096];
	size_t len;
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		tap_bail("%s: too long a name", dir);
	file = fopen(path, "rb");
	if (!file)
		tap_bail("%s: %m", path);
	len = fread(bytes, 1, sizeof(bytes), file);
	if (!feof(file) && fgetc(file) != EOF)
		tap_bail("%s: more than %d bytes", path, FUZZ_ROOM);
	fclose(file);
	one(bytes, len);
}

/* Inputs that once led somewhere new, or that failed: none may do so again. The target's
 * name is that of the program, behind "test_". */
static void corpus_try(const char *program)
{
	const char *top = getenv("WEFT_TOP_SRCDIR"), *name = strrchr(program, '/');
	struct dirent *e;
	char dir[2048];
	int count = 0;
	DIR *d;

	if (!top || !name || strncmp(name, "/test_", 6) != 0) {
		tap_skip(1, "WEFT_TOP_SRCDIR doesn't say where the corpus is");
		return;
	}
	snprintf(dir, sizeof(dir), "%s/tests/fuzz/corpus/%s", top, name + 6);
	d = opendir(dir);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.') {
			file_try(dir, e->d_name);
			count++;
		}
	if (d)
		closedir(d);
	tap_ok(count > 0, "%d inputs of %s", count, dir + strlen(top) + 1);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	uint64_t state = seed * 2 + 1;
	uint8_t bytes[FUZZ_ROOM] = {0};
	unsigned inputs = tap_short() ? INPUTS_SHORT : INPUTS;
	unsigned seeds = 0, accepted = 0, refused = 0;
	size_t len;

	tap_diag("seed %" PRIu64, seed);
	corpus_try(argv[0]);
	while ((len = fuzz_seed(seeds, bytes)) > 0) {
		tap_ok(one(bytes, len), "valid message %u is accepted", seeds);
		seeds++;
	}
	for (unsigned i = 0; i < inputs; i++) {
		memset(bytes, 0, sizeof(bytes));
		len = fuzz_seed((unsigned)(draw(&state) % seeds), bytes);
		len = change(&state, bytes, len);
		if (one(bytes, len))
			accepted++;
		else
			refused++;
	}
	tap_ok(accepted > 0 && refused > 0,
	       "%u changed messages: %u accepted, %u refused", inputs, accepted, refused);
	return tap_done();
}
