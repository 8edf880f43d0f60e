/* SPDX-License-Identifier: BSD-2-Clause */
/* Sides on two hosts meet. See apart.h. */
#include "config.h"

#include "fabtests/own/apart.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabtests/own/util.h"
#include "util/tap.h"

#define MEET_MS 60000

static int side = -1;
static struct sockaddr_in where = {.sin_family = AF_INET};
static const char *source = "127.0.0.1";

static bool where_read(const char *text)
{
	const char *colon = text ? strchr(text, ':') : NULL;
	char ip[INET_ADDRSTRLEN];
	char *end;
	unsigned long port;

	if (!colon || (size_t)(colon - text) >= sizeof(ip))
		return false;
	memcpy(ip, text, (size_t)(colon - text));
	ip[colon - text] = 0;
	port = strtoul(colon + 1, &end, 10);
	if (end == colon + 1 || *end || port == 0 || port > 65535)
		return false;
	where.sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, ip, &where.sin_addr) == 1;
}

void apart_init(void)
{
	const char *text = getenv("WEFT_TEST_SIDE"), *ip = getenv("WEFT_TEST_SOURCE");
	struct in_addr a;

	if (!text || !*text)
		return;
	if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
		tap_bail("WEFT_TEST_SIDE is '%s', 0 or 1 is wanted", text);
	if (!where_read(getenv("WEFT_TEST_MEET")))
		tap_bail("WEFT_TEST_SIDE wants WEFT_TEST_MEET=IP:PORT, where side 1 "
			 "listens");
	if (!ip || inet_pton(AF_INET, ip, &a) != 1)
		tap_bail("WEFT_TEST_SIDE wants WEFT_TEST_SOURCE=IP, of the endpoints "
			 "here");
	side = *text - '0';
	source = ip;
}

bool apart_is(void)
{
	return side >= 0;
}

int apart_side(void)
{
	return side;
}

const char *apart_source(void)
{
	return source;
}

static int sock_new(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		tap_bail("socket: %s", strerror(errno));
	return fd;
}

static int one_accept(void)
{
	int yes = 1, fd, listener = sock_new();
	struct pollfd p = {.fd = listener, .events = POLLIN};

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(listener, (struct sockaddr *)&where, sizeof(where)) < 0 ||
	    listen(listener, 1) < 0)
		tap_bail("WEFT_TEST_MEET: %s", strerror(errno));
	if (poll(&p, 1, MEET_MS) != 1)
		tap_bail("side 0 did not call within %d s", MEET_MS / 1000);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		tap_bail("accept: %s", strerror(errno));
	close(listener);
	return fd;
}

/* Side 1 may be at its last case still, or not be there yet. */
static int one_connect(void)
{
	uint64_t end = now_ms() + MEET_MS;

	for (;;) {
		int err, fd = sock_new();

		if (connect(fd, (struct sockaddr *)&where, sizeof(where)) == 0)
			return fd;
		err = errno;
		close(fd);
		if (err != ECONNREFUSED || now_ms() > end)
			tap_bail("side 1 does not answer: %s", strerror(err));
		sleep_ms(20);
	}
}

int apart_meet(void)
{
	int yes = 1, fd = side ? one_accept() : one_connect();

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	return fd;
}
