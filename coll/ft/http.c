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

/* A connection, and what encrypts it; NULL: nothing does. */
struct wire {
	int fd;
	struct ft_tls_conn *tls;
	int64_t deadline;
	char *why; /* FT_HTTP_WHY bytes */
};

enum { WIRE_PIECE = 16384 };

static bool wire_failed(const struct wire *w)
{
	snprintf(w->why, FT_HTTP_WHY, "%s", strerror(errno));
	return false;
}

static bool send_all(const struct wire *w, const char *text, size_t len)
{
	while (len) {
		ssize_t n = send(w->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			text += n;
			len -= (size_t)n;
		} else if (errno != EAGAIN && errno != EINTR) {
			return wire_failed(w);
		} else if (!wait_for(w->fd, POLLOUT, w->deadline)) {
			return wire_failed(w);
		}
	}
	return true;
}

/* Some bytes; *len 0: the other end has closed it. */
static bool receive_some(const struct wire *w, char *bytes, size_t most, size_t *len)
{
	for (;;) {
		ssize_t n = recv(w->fd, bytes, most, MSG_DONTWAIT);

		*len = n > 0 ? (size_t)n : 0;
		if (n >= 0)
			return true;
		if ((errno != EAGAIN && errno != EINTR) ||
		    !wait_for(w->fd, POLLIN, w->deadline))
			return wire_failed(w);
	}
}

/* What TLS has to say goes out. */
static bool tls_flush(const struct wire *w)
{
	char piece[WIRE_PIECE];
	size_t len;

	while ((len = ft_tls_get(w->tls, piece, sizeof(piece))) > 0) {
		if (!send_all(w, piece, len))
			return false;
	}
	return true;
}

/* What TLS waits for comes in. */
static bool tls_feed(const struct wire *w)
{
	char piece[WIRE_PIECE];
	size_t len;

	if (!receive_some(w, piece, sizeof(piece), &len))
		return false;
	if (len && ft_tls_put(w->tls, piece, len))
		return true;
	snprintf(w->why, FT_HTTP_WHY, "%s",
		 len ? "no memory" : "it closed the connection within TLS");
	return false;
}

static bool wire_write(const struct wire *w, const char *text, size_t len)
{
	enum ft_tls_end end;

	if (!w->tls)
		return send_all(w, text, len);
	do {
		end = ft_tls_write(w->tls, text, len, w->why);
		/* Also of what failed: the other end is told why. */
		if (!tls_flush(w))
			return false;
	} while (end == FT_TLS_WAITS && tls_feed(w));
	return end == FT_TLS_GOOD;
}

/* Some bytes; *len 0: that was all. */
static bool wire_read(const struct wire *w, char *bytes, size_t most, size_t *len)
{
	enum ft_tls_end end;

	if (!w->tls)
		return receive_some(w, bytes, most, len);
	do {
		end = ft_tls_read(w->tls, bytes, most, len, w->why);
		if (end != FT_TLS_BAD && !tls_flush(w))
			return false;
	} while (end == FT_TLS_WAITS && tls_feed(w));
	return end == FT_TLS_GOOD || end == FT_TLS_OVER;
}

/* All until the other end closes it, with a zero behind it. NULL: why. */
static char *receive_all(const struct wire *w)
{
	size_t room = 4096, len = 0, got;
	char *text = malloc(room), *more;

	if (!text)
		snprintf(w->why, FT_HTTP_WHY, "no memory");
	while (text && wire_read(w, text + len, room - len - 1, &got)) {
		if (got == 0) {
			text[len] = '\0';
			return text;
		}
		len += got;
		if (len + 1 < room)
			continue;
		more = room < FT_HTTP_MOST ? realloc(text, room * 2) : NULL;
		if (!more) {
			snprintf(w->why, FT_HTTP_WHY, "the answer is too long");
			break;
		}
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

char *ft_http_post(const struct ft_http_place *to, const char *path, const char *body,
		   int64_t deadline, char why[FT_HTTP_WHY])
{
	struct wire w = {.deadline = deadline, .why = why};
	char head[600], *text = NULL;
	uint32_t backoff = 0;
	int len;

	w.fd = boot_io_connect(to->host, to->port, deadline, &backoff, why, FT_HTTP_WHY);
	if (w.fd < 0)
		return NULL;
	w.tls = to->tls ? ft_tls_connect(to->tls, to->host) : NULL;
	/* Of the older version, in which an answer comes in one piece and ends with the
	 * connection. */
	len = snprintf(head, sizeof(head),
		       "POST %s HTTP/1.0\r\nHost: %s:%s\r\nContent-Type: "
		       "application/json\r\nContent-Length: %zu\r\n\r\n",
		       path, to->host, to->port, strlen(body));
	if (len < 0 || (size_t)len >= sizeof(head) || (to->tls && !w.tls))
		snprintf(why, FT_HTTP_WHY,
			 "no memory for the request, or it is too long");
	else if (wire_write(&w, head, (size_t)len) && wire_write(&w, body, strlen(body)))
		text = receive_all(&w);
	ft_tls_end(w.tls);
	close(w.fd);
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
