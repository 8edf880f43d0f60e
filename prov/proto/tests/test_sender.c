/* SPDX-License-Identifier: BSD-2-Clause */
/* Whom matching knows: names, other names, and who is still referred to. */
#include "config.h"

#include "prov/proto/sender.h"

#include <arpa/inet.h>

#include "util/tap.h"

static struct wire_addr addr_of(uint16_t port)
{
	struct wire_addr a = {0};

	a.in.sin_family = AF_INET;
	a.in.sin_port = htons(port);
	a.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static struct sender *get(struct sender_table *t, uint16_t port)
{
	struct wire_addr a = addr_of(port);
	struct sender *s = sender_get(t, &a);

	if (!s) {
		tap_bail("no memory");
	}
	return s;
}

static void test_table(void)
{
	static struct sender *all[1000];
	struct sender_table t;
	bool good = true;

	if (sender_table_init(&t)) {
		tap_bail("no memory");
	}
	for (int i = 0; i < 1000; i++) {
		all[i] = get(&t, (uint16_t)(i + 1));
	}
	for (int i = 0; i < 1000; i++) {
		good &= get(&t, (uint16_t)(i + 1)) == all[i] && all[i]->refs == 2;
		sender_put(&t, all[i]);
	}
	{
		struct wire_addr a = addr_of(7);
		struct sender *s;

		a.context = 5;
		s = sender_get(&t, &a);
		tap_ok(s == all[6], "contexts of one endpoint are one sender");
		sender_put(&t, s);
	}
	tap_ok(good && t.count == 1000, "equal addresses are one sender, others are not");
	for (int i = 0; i < 999; i++) {
		sender_put(&t, all[i]);
	}
	tap_ok(t.count == 1, "whom nobody refers to is forgotten");
	sender_table_fini(&t);
}

static void test_names(void)
{
	struct sender_table t;
	struct sender *a, *b, *c;

	if (sender_table_init(&t)) {
		tap_bail("no memory");
	}
	a = get(&t, 1);
	b = get(&t, 2);
	c = get(&t, 3);
	tap_ok(sender_ident(a) == a, "who has one name is known by it");
	sender_rename(&t, a, b);
	sender_rename(&t, a, b);
	tap_ok(sender_ident(a) == b && b->refs == 2, "who has two by the second");
	sender_rename(&t, a, c);
	tap_ok(sender_ident(a) == c && b->refs == 1 && c->refs == 2, "or the third");
	sender_put(&t, c);
	tap_ok(t.count == 3 && sender_ident(a) == c, "which a name keeps");
	sender_ref(c);
	sender_rename(&t, c, a);
	tap_ok(sender_ident(c) == a && sender_ident(a) == a, "names change places");
	sender_put(&t, a);
	sender_put(&t, b);
	tap_ok(t.count == 2 && sender_ident(c) == a, "and the other way round");
	sender_put(&t, c);
	tap_ok(t.count == 0, "none holds itself");
	sender_table_fini(&t);
}

int main(void)
{
	test_table();
	test_names();
	return tap_done();
}
