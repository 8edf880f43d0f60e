/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether memory is there, found out without touching it. */
#include "config.h"

#include "prov/mem/probe.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/tap.h"

#define PAGE 4096

static struct mem_probe probe;

static bool there(const char *at, size_t len, bool write, uint32_t incarnation)
{
	return mem_probe(&probe, (uintptr_t)at, len, write, incarnation);
}

/* Pages: writable, read-only, nothing, writable. */
static char *pages_make(void)
{
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + PAGE, PAGE, PROT_READ) ||
	    mprotect(p + 2 * PAGE, PAGE, PROT_NONE)) {
		tap_bail("no memory");
	}
	return p;
}

static void test_rights(void)
{
	char *p = pages_make();

	memset(p, 0x77, PAGE);
	tap_ok(there(p, PAGE, true, 1), "writable");
	tap_ok(!there(p, 2 * PAGE, true, 1), "its neighbour is read-only");
	tap_ok(there(p, 2 * PAGE, false, 1), "both can be read");
	tap_ok(!there(p + PAGE, PAGE + 1, false, 1), "the one behind them can't");
	tap_ok(!there(p + 2 * PAGE - 4, 8, false, 1), "nor across the edge");
	tap_ok(there(p + 4 * PAGE - 1, 1, true, 1), "the last byte");
	tap_ok(!there(p + 2 * PAGE, 1, true, 1), "no access at all");
	tap_ok(!there(NULL, 8, false, 1) && !there((char *)8, 8, true, 1),
	       "the first page of all");
	tap_ok(!there((char *)UINTPTR_MAX, 1, false, 1), "the last of all");
	for (int i = 0; i < PAGE; i++) {
		if (p[i] != 0x77) {
			tap_bail("byte %d was changed", i);
		}
	}
	tap_ok(true, "nothing was changed");
	munmap(p, 4 * PAGE);
}

static void test_remembered(void)
{
	char *p = pages_make();

	tap_ok(there(p + PAGE, 8, false, 2), "found readable");
	tap_ok(!there(p + PAGE, 8, true, 2), "which isn't writable");
	tap_ok(there(p, 8, true, 2), "found writable");
	munmap(p, 4 * PAGE);
	tap_ok(there(p, 8, true, 2), "remembered for that registration");
	tap_ok(!there(p, 8, true, 3), "asked anew for the next");
}

/* Behind the end of a file is a mapping without memory. */
static void test_short_file(void)
{
	int fd = memfd_create("probe", MFD_CLOEXEC);
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd < 0 || p == MAP_FAILED || ftruncate(fd, PAGE)) {
		tap_bail("no file");
	}
	tap_ok(there(p, PAGE, true, 4), "in a file");
	tap_ok(!there(p + PAGE, 8, false, 4) && !there(p + PAGE, 8, true, 4),
	       "behind its end");
	munmap(p, 2 * PAGE);
	close(fd);
}

int main(void)
{
	test_rights();
	test_remembered();
	test_short_file();
	return tap_done();
}
