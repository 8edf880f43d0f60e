/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of test_uet.c that is about lent memory; between the functions that it uses
 * and main. */
/* ---- lent memory ------------------------------------------------------------------- */

/* a reads that of what b has lent it; 0, or what became of it. */
static int borrow(struct side *a, struct side *b, void *to, size_t len, const void *from,
		  uint64_t name)
{
	struct iovec iov[2] = {{to, len / 3}, {(uint8_t *)to + len / 3, len - len / 3}};
	struct wire_segment seg = {
		.local = iov,
		.local_count = 2,
		.remote = {.addr = (uintptr_t)from, .key = name, .raw = true},
		.len = len,
		.cookie = a};
	unsigned before = a->segments;
	int ret;

	while ((ret = uet_wire_ops.get(a->dialled, &seg)) == -FI_EAGAIN)
		turn(a, b);
	if (ret || !b)
		return ret;
	return until(a, b, &a->segments, before + 1) ? a->segment_err : -FI_ETIMEDOUT;
}

static void test_lent(const char *network, unsigned rounds)
{
	const char *name = network ? network : "a good network";
	static uint8_t back[MEMORY];
	unsigned bad = 0, failed = 0, refused = 0;
	struct side a, b;
	uint64_t loan;

	side_open(&a);
	side_open(&b);
	bad_network(&a, network);
	bad_network(&b, network);
	if (!dial(&a, &b))
		tap_bail("%s: no link", name);
	fill(b.memory, draw(), MEMORY);
	loan = uet_wire_ops.lend(b.accepted, b.memory + 8, MEMORY - 16);
	for (unsigned i = 0; i < rounds; i++) {
		size_t len = 1 + draw() % (i % 3 ? 9000 : MEMORY - 16);
		size_t at = 8 + draw() % (MEMORY - 15 - len);

		memset(back, 0, sizeof(back));
		failed += borrow(&a, &b, back, len, b.memory + at, loan) != 0;
		bad += memcmp(back, b.memory + at, len) != 0;
		bad += len < MEMORY && back[len] != 0;
	}
	tap_ok(!failed && !bad, "%s: lent memory is read, at any place", name);
	refused += borrow(&a, &b, back, 9, b.memory, loan) == -FI_ENOKEY;
	refused += borrow(&a, &b, back, 9, b.memory + MEMORY - 16, loan) == -FI_ENOKEY;
	refused += borrow(&a, &b, back, MEMORY, b.memory + 8, loan) == -FI_ENOKEY;
	refused += borrow(&a, &b, back, 9, b.memory + 8, loan + 1) == -FI_ENOKEY;
	refused += borrow(&a, &b, back, 9, b.memory + 8, 0) == -FI_ENOKEY;
	uet_wire_ops.unlend(b.ep, loan);
	uet_wire_ops.unlend(b.ep, loan);
	refused += borrow(&a, &b, back, 9, b.memory + 8, loan) == -FI_ENOKEY;
	tap_ok(refused == 6, "%s: nothing else is (%u of 6)", name, refused);
	side_close(&a);
	side_close(&b);
}

/* D3: taken back at any time; whoever looked at it afterwards would be killed. */
static void test_taken_back(const char *network, unsigned rounds)
{
	static uint8_t back[MEMORY];
	unsigned whole = 0, cut = 0, wrong = 0;
	struct side a, b;

	side_open(&a);
	side_open(&b);
	bad_network(&a, network);
	bad_network(&b, network);
	if (!dial(&a, &b))
		tap_bail("no link");
	for (unsigned i = 0; i < rounds; i++) {
		uint8_t *lent = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		unsigned before = a.segments;
		uint64_t loan;

		if (lent == MAP_FAILED)
			tap_bail("no memory");
		memset(lent, (int)i + 1, MEMORY);
		memset(back, 0, sizeof(back));
		loan = uet_wire_ops.lend(b.accepted, lent, MEMORY);
		if (borrow(&a, NULL, back, MEMORY, lent, loan))
			tap_bail("no get");
		for (uint64_t turns = draw() % 12; turns; turns--)
			turn(&a, &b);
		uet_wire_ops.unlend(b.ep, loan);
		munmap(lent, MEMORY);
		if (!until(&a, &b, &a.segments, before + 1)) {
			wrong++;
			break;
		}
		whole += a.segment_err == 0;
		cut += a.segment_err == -FI_ENOKEY;
		for (size_t at = 0; a.segment_err == 0 && at < MEMORY; at++)
			wrong += back[at] != (uint8_t)(i + 1);
	}
	tap_ok(whole + cut == rounds && !wrong,
	       "D3: what is taken back early comes whole or not at all");
	tap_diag("%u whole, %u not, %u wrong", whole, cut, wrong);
	side_close(&a);
	side_close(&b);
}
