/* SPDX-License-Identifier: BSD-2-Clause */
/* What etcd's gateway may answer, and what is no answer. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll/boot/boot_clock.h"
#include "coll/ft/http.h"
#include "util/tap.h"

static void base64(void)
{
	uint8_t bytes[100];
	bool good = true;
	size_t len;

	for (size_t n = 0; n <= sizeof(bytes); n++) {
		char *text;
		uint8_t *back;

		for (size_t i = 0; i < n; i++)
			bytes[i] = (uint8_t)(i * 37 + n * 101);
		text = ft_base64_put(bytes, n);
		back = ft_base64_get(text, strlen(text), &len);
		good &= back && len == n && memcmp(back, bytes, n) == 0;
		free(text);
		free(back);
	}
	tap_ok(good, "base64 of every length comes back");
	good = true;
	for (const char *const *bad =
		     (const char *const[]){"A", "AB", "ABC", "A===", "AB=C",
					   "====", "A*BC", "AB==ABCD", NULL};
	     *bad; bad++) {
		uint8_t *got = ft_base64_get(*bad, strlen(*bad), &len);

		if (got)
			tap_diag("%s", *bad);
		good &= !got;
		free(got);
	}
	tap_ok(good, "what is none is refused");
}

static bool finds(const char *text, const char *name, const char *want)
{
	size_t len = 0;
	const char *at = ft_json_find(text, name, &len);

	return want ? at && len == strlen(want) && strncmp(at, want, len) == 0 : !at;
}

static void json(void)
{
	const char *text = "{\"a\":{\"ID\": \"12\"},\"b\":true,\"c\":[1],\"d\":7}";

	tap_ok(finds(text, "ID", "12") && finds(text, "b", "true") &&
		       finds(text, "d", "7"),
	       "fields are found");
	tap_ok(finds(text, "a", NULL) && finds(text, "c", NULL) && finds(text, "e", NULL),
	       "but objects, lists, and what isn't there");
	tap_ok(finds("{\"a\":\"12", "a", NULL) && finds("{\"a\":\"1\\\"2\"}", "a", NULL),
	       "text that does not end, or is escaped, is none");
	tap_ok(finds("{\"a\":", "a", ""), "a value that is cut off is empty");
}

/* Answers each connection with the next of these, and closes it; `hang`: not at all. */
static void serve(int fd, const char *const *answer)
{
	char request[4096];

	for (; *answer; answer++) {
		int to = accept(fd, NULL, NULL);

		if (to < 0 || recv(to, request, sizeof(request), 0) <= 0)
			_exit(1);
		if (strcmp(*answer, "hang") == 0)
			continue;
		(void)!send(to, *answer, strlen(*answer), MSG_NOSIGNAL);
		shutdown(to, SHUT_WR);
		while (recv(to, request, sizeof(request), 0) > 0)
			;
		close(to);
	}
	_exit(0);
}

static void answers(void)
{
	static const char *const answer[] = {"HTTP/1.0 200 OK\r\nX: y\r\n\r\n{\"a\":1}",
					     "HTTP/1.0 404 Not Found\r\n\r\nno",
					     "HTTP/1.0 200 OK\r\n",
					     "",
					     "garbage%s%n",
					     "hang",
					     NULL};
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);
	char port[8], why[FT_HTTP_WHY], *body;
	const struct ft_http_place to = {"127.0.0.1", port, NULL};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t pid;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&at, len) || listen(fd, 8) ||
	    getsockname(fd, (struct sockaddr *)&at, &len))
		tap_bail("%s", strerror(errno));
	snprintf(port, sizeof(port), "%u", ntohs(at.sin_port));
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		serve(fd, answer);
	close(fd);
	for (int i = 0; answer[i]; i++) {
		bool hangs = strcmp(answer[i], "hang") == 0;
		int64_t us = hangs ? 200000 : 60000000;

		body = ft_http_post(&to, "/x", "{}", boot_clock_us() + us, why);
		if (i == 0)
			tap_is_str(body, "{\"a\":1}", "an answer");
		else
			tap_ok(!body && *why, "no answer: %s",
			       hangs ? "none in time" : why);
		free(body);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	body = ft_http_post(&to, "/x", "{}", boot_clock_us() + 100000, why);
	tap_ok(!body && *why, "nobody listens: it is said in time");
	free(body);
}

int main(void)
{
	base64();
	json();
	answers();
	return tap_done();
}
