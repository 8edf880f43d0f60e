/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One request to a server of HTTP or HTTPS, and its answer: POST of JSON, a connection
 * each, until a deadline. And the little of JSON and base64 that etcd's answers take: its
 * values are numbers and base64 only, which have nothing to be escaped.
 */
#ifndef WEFT_FT_HTTP_H
#define WEFT_FT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/ft/tls.h"

enum { FT_HTTP_MOST = 4 << 20, FT_HTTP_WHY = FT_TLS_WHY };

struct ft_http_place {
	const char *host, *port;
	const struct ft_tls *tls; /* NULL: in clear */
};

/* The body of an answer of status 200, allocated, with a zero behind it. NULL: why; the
 * request may have been carried out all the same. Connecting is tried until the deadline
 * (boot_clock.h). */
char *ft_http_post(const struct ft_http_place *to, const char *path, const char *body,
		   int64_t deadline, char why[FT_HTTP_WHY]);

/* The value of the first field of that name, without quotes: *len characters. NULL: there
 * is none, or it is an object. */
const char *ft_json_find(const char *text, const char *name, size_t *len);

/* Allocated, with a zero behind it; NULL: no memory. */
char *ft_base64_put(const void *bytes, size_t len);

/* Allocated; NULL: no memory, or it is none. */
uint8_t *ft_base64_get(const char *text, size_t text_len, size_t *len);

#endif
