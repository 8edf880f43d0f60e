/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TAP output for C tests. Each test program calls tap_* checks and ends with
 * "return tap_done();". The plan is printed at the end, so that a program that
 * dies in the middle is reported as an error by the harness.
 */
#ifndef WEFT_UTIL_TAP_H
#define WEFT_UTIL_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tap_state {
	int run;
	int failed;
};

static struct tap_state tap_state;

__attribute__((unused, format(printf, 2, 3))) static bool tap_ok(bool good,
								 const char *fmt, ...)
{
	va_list ap;

	tap_state.run++;
	if (!good)
		tap_state.failed++;
	printf("%sok %d - ", good ? "" : "not ", tap_state.run);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	return good;
}

__attribute__((unused, format(printf, 1, 2))) static void tap_diag(const char *fmt, ...)
{
	va_list ap;

	printf("# ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

__attribute__((unused)) static bool tap_is_int(int64_t got, int64_t want,
					       const char *what)
{
	bool good = tap_ok(got == want, "%s", what);

	if (!good)
		tap_diag("got %" PRId64 ", want %" PRId64, got, want);
	return good;
}

__attribute__((unused)) static bool tap_is_str(const char *got, const char *want,
					       const char *what)
{
	bool good = tap_ok(got && want && strcmp(got, want) == 0, "%s", what);

	if (!good)
		tap_diag("got \"%s\", want \"%s\"", got ? got : "(null)",
			 want ? want : "(null)");
	return good;
}

__attribute__((unused)) static bool tap_is_mem(const void *got, const void *want,
					       size_t len, const char *what)
{
	const unsigned char *g = got, *w = want;
	bool good = tap_ok(memcmp(got, want, len) == 0, "%s", what);

	for (size_t i = 0; !good && i < len; i++) {
		if (g[i] == w[i])
			continue;
		tap_diag("first difference at byte %zu of %zu: got 0x%02x, want 0x%02x",
			 i, len, g[i], w[i]);
		break;
	}
	return good;
}

__attribute__((unused, format(printf, 2, 3))) static void tap_skip(int n, const char *fmt,
								   ...)
{
	char why[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	for (int i = 0; i < n; i++)
		printf("ok %d # SKIP %s\n", ++tap_state.run, why);
	fflush(stdout);
}

/* Whether WEFT_TEST_SHORT asks for fewer rounds: sanitizers make each of them slow. */
__attribute__((unused)) static bool tap_short(void)
{
	const char *env = getenv("WEFT_TEST_SHORT");

	return env && *env && strcmp(env, "0") != 0;
}

/* Whether this program was built with a sanitizer that cares who loads what, or where. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TAP_SANITIZED 1
#elif defined(__has_feature)
#define TAP_SANITIZED \
	(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define TAP_SANITIZED 0
#endif

/* A failure that makes going on pointless. */
__attribute__((unused, noreturn, format(printf, 1, 2))) static void tap_bail(
	const char *fmt, ...)
{
	va_list ap;

	printf("Bail out! ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	exit(99);
}

__attribute__((unused)) static int tap_done(void)
{
	printf("1..%d\n", tap_state.run);
	fflush(stdout);
	return tap_state.failed ? 1 : 0;
}

#endif
