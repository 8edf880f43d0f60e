/* SPDX-License-Identifier: BSD-2-Clause */
/* See http.h. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll/boot/boot_clock.h"
#include "coll/boot/boot_io.h"
#include "coll/ft/http.h"

/* Waits for the socket; false: the deadline has passed. */
static bool wait_for(int fd, short events, int64_t deadline)
{
	struct pollfd p = {.fd = fd, .events = events};
	int rc;

	do
		rc = poll(&p, 1, boot_wait_ms(deadline, -1));
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		errno = ETIMEDOUT;
	return rc > 0;
}

static bool send_all(int fd, const char *text, size_t len, int64_t deadline)
{
	while (len) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			text += n;
			len -= (size_t)n;
		} else if (errno != EAGAIN && errno != EINTR) {
			return false;
		} else if (!wait_for(fd, POLLOUT, deadline)) {
			return false;
		}
	}
	return true;
}

/* All until the other end closes it, with a zero behind it. NULL: errno. */
static char *receive_all(int fd, int64_t deadline)
{
	size_t room = 4096, len = 0;
	char *text = malloc(room);

	while (text) {
		ssize_t n = recv(fd, text + len, room - len - 1, MSG_DONTWAIT);
		char *more;

		if (n == 0) {
			text[len] = '\0';
			return text;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			break;
		if (n < 0 && !wait_for(fd, POLLIN, deadline))
			break;
		len += n > 0 ? (size_t)n : 0;
		if (len + 1 < room)
			continue;
		errno = EMSGSIZE;
		more = room < FT_HTTP_MOST ? realloc(text, room * 2) : NULL;
		if (!more)
			break;
		text = more;
		room *= 2;
	}
	free(text);
	return NULL;
}

/* Without the head of the answer, which must say 200. */
static char *take_body(char *text, char why[FT_HTTP_WHY])
{
	char *body = strstr(text, "\r\n\r\n");

	if (!body || strncmp(text, "HTTP/1.", 7) != 0 ||
	    strncmp(text + 8, " 200", 4) != 0) {
		snprintf(why, FT_HTTP_WHY, "the answer is \"%.*s\"",
			 (int)strcspn(text, "\r\n") % 200, text);
		free(text);
		return NULL;
	}
	body += 4;
	memmove(text, body, strlen(body) + 1);
	return text;
}

char *ft_http_post(const char *host, const char *port, const char *path, const char *body,
		   int64_t deadline, char why[FT_HTTP_WHY])
{
	char head[600], *text = NULL;
	uint32_t backoff = 0;
	int fd, len;

	fd = boot_io_connect(host, port, deadline, &backoff, why, FT_HTTP_WHY);
	if (fd < 0)
		return NULL;
	/* Of the older version, in which an answer comes in one piece and ends with the
	 * connection. */
	len = snprintf(head, sizeof(head),
		       "POST %s HTTP/1.0\r\nHost: %s:%s\r\nContent-Type: "
		       "application/json\r\nContent-Length: %zu\r\n\r\n",
		       path, host, port, strlen(body));
	if (len > 0 && (size_t)len < sizeof(head) &&
	    send_all(fd, head, (size_t)len, deadline) &&
	    send_all(fd, body, strlen(body), deadline))
		text = receive_all(fd, deadline);
	if (!text)
		snprintf(why, FT_HTTP_WHY, "%s", strerror(errno));
	close(fd);
	return text ? take_body(text, why) : NULL;
}

/* ---- JSON -------------------------------------------------------------------------- */

const char *ft_json_find(const char *text, const char *name, size_t *len)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(text, key);
	if (!at)
		return NULL;
	at += strlen(key);
	at += strspn(at, " \t\r\n");
	if (*at == '{' || *at == '[')
		return NULL;
	if (*at == '"') {
		at++;
		*len = strcspn(at, "\"\\");
		return at[*len] == '"' ? at : NULL;
	}
	*len = strcspn(at, ",}] \t\r\n");
	return at;
}

/* ---- base64 ------------------------------------------------------------------------ */

static const char digit[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *ft_base64_put(const void *bytes, size_t len)
{
	const uint8_t *in = bytes;
	char *text = malloc((len + 2) / 3 * 4 + 1), *at = text;

	if (!text)
		return NULL;
	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)in[i] << 16;

		v |= n > 1 ? (uint32_t)in[i + 1] << 8 : 0;
		v |= n > 2 ? in[i + 2] : 0;
		for (size_t k = 0; k < 4; k++)
			*at++ = k <= n ? digit[v >> (18 - 6 * k) & 63] : '=';
	}
	*at = '\0';
	return text;
}

/* -1: none. */
static int digit_value(char c)
{
	const char *at = c ? strchr(digit, c) : NULL;

	return at ? (int)(at - digit) : -1;
}

/* Of four digits, of which the last one or two may be padding: bytes; 0: they are none.
 */
static size_t get_four(const char *text, bool last, uint8_t out[3])
{
	size_t n = 3;
	uint32_t v = 0;

	if (last && text[3] == '=')
		n = text[2] == '=' ? 1 : 2;
	for (size_t k = 0; k < 4; k++) {
		int d = k <= n ? digit_value(text[k]) : 0;

		if (d < 0)
			return 0;
		v = v << 6 | (uint32_t)d;
	}
	for (size_t k = 0; k < n; k++)
		out[k] = (uint8_t)(v >> (16 - 8 * k));
	return n;
}

uint8_t *ft_base64_get(const char *text, size_t text_len, size_t *len)
{
	uint8_t *bytes = malloc(text_len / 4 * 3 + 3);

	*len = 0;
	if (!bytes || text_len % 4) {
		free(bytes);
		return NULL;
	}
	for (size_t i = 0; i < text_len; i += 4) {
		size_t n = get_four(text + i, i + 4 == text_len, bytes + *len);

		*len += n;
		if (n)
			continue;
		free(bytes);
		return NULL;
	}
	return bytes;
}
