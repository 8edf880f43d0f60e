/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parser of the fabric map, and looking up in it. A row is one line of hosts: a name
 * is split at its last run of digits, so that a range is a row and a single host is a
 * range of one; sorted rows make both looking up and finding what is said twice quick.
 */
#include "config.h"

#include "topo/fabric/map_read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 9
#define FORMAT	   "weft-fabric"

int map_fail(struct reader *r, const char *fmt, ...)
{
	va_list ap;

	r->error->line = r->line;
	va_start(ap, fmt);
	vsnprintf(r->error->text, sizeof(r->error->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

bool map_speed(struct span w, uint64_t *bits_per_s)
{
	static const struct {
		char letter;
		uint64_t unit;
	} units[] = {{'M', 1000000}, {'G', 1000000000}, {'T', 1000000000000}};
	uint32_t value;

	if (w.len < 2 || w.len > 7 ||
	    !span_number((struct span){w.at, w.len - 1}, &value) || value == 0)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (w.at[w.len - 1] == units[i].letter) {
			*bits_per_s = value * units[i].unit;
			return true;
		}
	return false;
}

static unsigned rail_find(const struct fabric_map *map, struct span name)
{
	unsigned i = 0;

	while (i < map->rails && !span_is(name, map->rail[i].name))
		i++;
	return i;
}

static int rail_read(struct reader *r)
{
	struct span name = span_word(&r->left), speed = span_word(&r->left),
		    rest = span_word(&r->left);
	struct fabric_map *map = r->map;
	struct fabric_rail *rail = &map->rail[map->rails];

	if (!fabric_name_valid(name.at, name.len, FABRIC_PART_MAX))
		return map_fail(r,
				"rail \"%.*s\": a name has 1 to %d letters, digits, '.', "
				"'_' and '-', which isn't the first",
				SPAN_SHOWN(name), FABRIC_PART_MAX);
	if (rail_find(map, name) < map->rails)
		return map_fail(r, "rail %.*s is said a second time", SPAN_SHOWN(name));
	if (map->rails == FABRIC_RAILS_MAX)
		return map_fail(r, "rail %.*s is one too many: there are at most %u",
				SPAN_SHOWN(name), FABRIC_RAILS_MAX);
	if (!map_speed(speed, &rail->bits_per_s) || rest.len)
		return map_fail(
			r,
			"rail %.*s: \"%.*s\" is no speed; write bits per second as in "
			"\"rail %.*s 400G\" (M, G or T)",
			SPAN_SHOWN(name), SPAN_SHOWN(rest.len ? rest : speed),
			SPAN_SHOWN(name));
	memcpy(rail->name, name.at, name.len);
	rail->name[name.len] = '\0';
	map->rails++;
	return 0;
}

static void part_put(char *to, const char *from, size_t len)
{
	memcpy(to, from, len);
	to[len] = '\0';
}

/* A name without a range: of its last digits, as many as a number may have. */
static void row_single(struct row *row, struct span name)
{
	size_t end = name.len, at;

	while (end > 0 && !span_digit(name.at[end - 1]))
		end--;
	at = end;
	while (at > 0 && span_digit(name.at[at - 1]) && end - at < DIGITS_MAX)
		at--;
	if (end == 0) {
		part_put(row->prefix, name.at, name.len);
		row->suffix[0] = '\0';
		row->from = row->to = 0;
		row->width = 0;
		return;
	}
	span_number((struct span){name.at + at, end - at}, &row->from);
	row->to = row->from;
	row->width = (uint8_t)(end - at);
	part_put(row->prefix, name.at, at);
	part_put(row->suffix, name.at + end, name.len - end);
}

/* The place in a sorted list: what is equal here and overlaps is the same host. */
static int row_order(const struct row *a, const struct row *b)
{
	int by = strcmp(a->prefix, b->prefix);

	if (by == 0)
		by = strcmp(a->suffix, b->suffix);
	if (by == 0)
		by = (int)a->width - (int)b->width;
	return by;
}

static int row_compare(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	int by = row_order(a, b);

	if (by == 0)
		by = (a->from > b->from) - (a->from < b->from);
	/* Of two for one host the later line is to blame. */
	if (by == 0)
		by = (a->line > b->line) - (a->line < b->line);
	return by;
}

/* Digits before the bracket are the number's too: rack1[01-16] is 101 to 116. */
static bool range_join(struct row *row, struct span *prefix)
{
	size_t digits = 0;
	uint32_t base = 0;

	while (digits < prefix->len && span_digit(prefix->at[prefix->len - 1 - digits]))
		digits++;
	if (digits == 0)
		return true;
	if (digits + row->width > DIGITS_MAX)
		return false;
	span_number((struct span){prefix->at + prefix->len - digits, digits}, &base);
	for (unsigned i = 0; i < row->width; i++)
		base *= 10;
	row->from += base;
	row->to += base;
	row->width = (uint8_t)(row->width + digits);
	prefix->len -= digits;
	return true;
}

/* The parts around the number. False: the names would not be valid. */
static bool range_parts(struct row *row, struct span prefix, struct span suffix)
{
	char whole[FABRIC_HOST_MAX + 1];
	size_t len = prefix.len + row->width + suffix.len;

	if (len > FABRIC_HOST_MAX)
		return false;
	memcpy(whole, prefix.at, prefix.len);
	memset(whole + prefix.len, '0', row->width);
	memcpy(whole + prefix.len + row->width, suffix.at, suffix.len);
	part_put(row->prefix, prefix.at, prefix.len);
	part_put(row->suffix, suffix.at, suffix.len);
	return fabric_name_valid(whole, len, FABRIC_HOST_MAX);
}

int map_row_range(struct reader *r, struct row *row, struct span name, const char *open)
{
	const char *end = name.at + name.len;
	const char *close = memchr(open, ']', (size_t)(end - open));
	const char *dash = memchr(open, '-', (size_t)(end - open));
	struct span prefix = {name.at, (size_t)(open - name.at)}, suffix, from, to;

	if (!close || !dash || dash > close)
		return map_fail(
			r, "host \"%.*s\": a range is [FIRST-LAST], as in gpu[01-16]",
			SPAN_SHOWN(name));
	from = (struct span){open + 1, (size_t)(dash - open - 1)};
	to = (struct span){dash + 1, (size_t)(close - dash - 1)};
	suffix = (struct span){close + 1, (size_t)(end - close - 1)};
	if (!span_number(from, &row->from) || !span_number(to, &row->to))
		return map_fail(r, "host \"%.*s\": a range has numbers of 1 to %d digits",
				SPAN_SHOWN(name), DIGITS_MAX);
	if (from.len != to.len)
		return map_fail(
			r,
			"host \"%.*s\": write both bounds with equally many digits, "
			"in two lines if need be",
			SPAN_SHOWN(name));
	if (row->from > row->to)
		return map_fail(r, "host \"%.*s\": the range is empty", SPAN_SHOWN(name));
	row->width = (uint8_t)from.len;
	for (size_t i = 0; i < suffix.len; i++)
		if (span_digit(suffix.at[i]))
			return map_fail(r, "host \"%.*s\": behind a range comes no digit",
					SPAN_SHOWN(name));
	if (!range_join(row, &prefix))
		return map_fail(r, "host \"%.*s\": its number has more than %d digits",
				SPAN_SHOWN(name), DIGITS_MAX);
	return range_parts(row, prefix, suffix)
		       ? 0
		       : map_fail(r,
				  "host \"%.*s\": a name has 1 to %d "
				  "letters, digits, '.', '_' and "
				  "'-', which isn't the first",
				  SPAN_SHOWN(name), FABRIC_HOST_MAX);
}

/* "r0=mlx5_0". */
static int device_read(struct reader *r, struct fabric_host *host, struct span host_name,
		       struct span w)
{
	const char *equals = memchr(w.at, '=', w.len);
	struct span name, device;
	unsigned rail;

	if (!equals)
		return map_fail(r,
				"host %.*s: \"%.*s\" is no RAIL=DEVICE, as in r0=mlx5_0",
				SPAN_SHOWN(host_name), SPAN_SHOWN(w));
	name = (struct span){w.at, (size_t)(equals - w.at)};
	device = (struct span){equals + 1, w.len - name.len - 1};
	rail = rail_find(r->map, name);
	if (rail == r->map->rails)
		return map_fail(
			r,
			"host %.*s: rail \"%.*s\" is not known; say it before, as in "
			"\"rail r0 400G\"",
			SPAN_SHOWN(host_name), SPAN_SHOWN(name));
	if (host->device[rail][0])
		return map_fail(r, "host %.*s is on rail %.*s a second time",
				SPAN_SHOWN(host_name), SPAN_SHOWN(name));
	if (!fabric_name_valid(device.at, device.len, FABRIC_DEVICE_MAX))
		return map_fail(r,
				"host %.*s: device \"%.*s\": a name has 1 to %d letters, "
				"digits, '.', '_' and '-', which isn't the first",
				SPAN_SHOWN(host_name), SPAN_SHOWN(device),
				FABRIC_DEVICE_MAX);
	part_put(host->device[rail], device.at, device.len);
	return 0;
}

struct row *map_row_add(struct fabric_map *map)
{
	struct row *row;

	if (map->rows == map->room) {
		size_t room = map->room ? map->room * 2 : 64;

		row = realloc(map->row, room * sizeof(*row));
		if (!row)
			return NULL;
		map->row = row;
		map->room = room;
	}
	row = &map->row[map->rows];
	memset(row, 0, sizeof(*row));
	row->host = calloc(1, sizeof(*row->host));
	if (!row->host)
		return NULL;
	map->rows++;
	return row;
}

static int host_read(struct reader *r)
{
	struct span name = span_word(&r->left), place = span_word(&r->left), w;
	const char *open = memchr(name.at, '[', name.len);
	struct row *row;
	int rc;

	if (r->map->rows == FABRIC_ROWS_MAX)
		return map_fail(
			r, "more than %u lines of hosts; use ranges, as in gpu[01-16]",
			FABRIC_ROWS_MAX);
	if (!open && !fabric_name_valid(name.at, name.len, FABRIC_HOST_MAX))
		return map_fail(r,
				"host \"%.*s\": a name has 1 to %d letters, digits, '.', "
				"'_' and '-', which isn't the first",
				SPAN_SHOWN(name), FABRIC_HOST_MAX);
	row = map_row_add(r->map);
	if (!row)
		return -ENOMEM;
	row->line = r->line;
	if (open) {
		rc = map_row_range(r, row, name, open);
		if (rc)
			return rc;
	} else {
		row_single(row, name);
	}
	if (!fabric_place_parse(place.at, place.len, &row->host->place))
		return map_fail(
			r,
			"host %.*s: \"%.*s\" is no BUILDING/ZONE/RACK; what is not "
			"known, and what lies below it, is \"-\"",
			SPAN_SHOWN(name), SPAN_SHOWN(place));
	while ((w = span_word(&r->left)).len) {
		rc = device_read(r, row->host, name, w);
		if (rc)
			return rc;
	}
	return 0;
}

static int format_read(struct reader *r, struct span first)
{
	struct span version = span_word(&r->left), rest = span_word(&r->left);

	if (!span_is(first, FORMAT) || !span_is(version, "1") || rest.len)
		return map_fail(
			r, "\"%.*s\": the first line of a fabric map is \"" FORMAT " 1\"",
			SPAN_SHOWN(first));
	r->named = true;
	return 0;
}

static int line_read(struct reader *r)
{
	static const struct {
		const char *name;
		int (*read)(struct reader *r);
	} kinds[] = {{"rail", rail_read},
		     {"host", host_read},
		     {"tier", map_tier_read},
		     {"ranks", map_ranks_read},
		     {"grid", map_grid_read}};
	struct span first = span_word(&r->left);

	if (first.len == 0)
		return 0;
	if (!r->named)
		return format_read(r, first);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (span_is(first, kinds[i].name))
			return kinds[i].read(r);
	return map_fail(r,
			"\"%.*s\": a line begins with \"rail\" or \"host\", \"tier\", "
			"\"ranks\" or \"grid\"",
			SPAN_SHOWN(first));
}

static int lines_read(struct reader *r, struct span text)
{
	int rc = 0;

	while (text.len > 0 && rc == 0) {
		r->line++;
		r->left = span_line(&text);
		rc = line_read(r);
	}
	return rc;
}

/* The first of b's hosts is one of a's. */
static int said_twice(struct reader *r, const struct row *a, const struct row *b)
{
	unsigned before = a->line < b->line ? a->line : b->line;

	r->line = a->line < b->line ? b->line : a->line;
	if (b->width == 0)
		return map_fail(r, "host %s was said before, in line %u", b->prefix,
				before);
	return map_fail(r, "host %s%0*u%s was said before, in line %u", b->prefix,
			b->width, b->from, b->suffix, before);
}

static int order_compare(const void *left, const void *right, void *arg)
{
	const struct row *row = arg, *a = &row[*(const uint32_t *)left],
			 *b = &row[*(const uint32_t *)right];

	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return (a->from > b->from) - (a->from < b->from);
}

/* How the file has them. */
static int rows_order(struct fabric_map *map)
{
	map->order = calloc(map->rows + 1, sizeof(*map->order));
	if (!map->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < map->rows; i++)
		map->order[i] = i;
	qsort_r(map->order, map->rows, sizeof(*map->order), order_compare, map->row);
	return 0;
}

/* No host is said twice. */
static int rows_sort(struct reader *r)
{
	struct fabric_map *map = r->map;

	if (map->rows)
		qsort(map->row, map->rows, sizeof(*map->row), row_compare);
	for (size_t i = 1; i < map->rows; i++) {
		const struct row *a = &map->row[i - 1], *b = &map->row[i];

		if (row_order(a, b) != 0 || b->from > a->to)
			continue;
		return said_twice(r, a, b);
	}
	return rows_order(map);
}

int fabric_map_parse(const char *text, size_t len, struct fabric_map **map,
		     struct fabric_error *error)
{
	struct reader r = {.error = error};
	int rc;

	*error = (struct fabric_error){.text = "out of memory"};
	if (len > FABRIC_FILE_MAX)
		return map_fail(&r, "more than %zu bytes", FABRIC_FILE_MAX);
	r.map = calloc(1, sizeof(*r.map));
	if (!r.map)
		return -ENOMEM;
	rc = lines_read(&r, (struct span){text, len});
	if (rc == 0 && !r.named)
		rc = map_fail(&r,
			      "there is nothing in it; a fabric map begins with \"" FORMAT
			      " 1\"");
	if (rc == 0)
		rc = rows_sort(&r);
	if (rc == 0)
		rc = map_tiers_check(&r);
	if (rc) {
		fabric_map_free(r.map);
		return rc;
	}
	error->text[0] = '\0';
	*map = r.map;
	return 0;
}

static int file_fail(struct fabric_error *error, const char *path, int rc)
{
	snprintf(error->text, sizeof(error->text),
		 "%.150s: %s; name a fabric map that can be read", path, strerror(-rc));
	return rc;
}

/* All of it, or an error; *text is the caller's to free. */
static int file_read(FILE *file, char **text, size_t *len)
{
	size_t room = 1 << 16, at = 0, got;
	char *bytes = malloc(room);

	while (bytes && (got = fread(bytes + at, 1, room - at, file)) > 0) {
		char *more = bytes;

		at += got;
		if (at > FABRIC_FILE_MAX) {
			free(bytes);
			return -EFBIG;
		}
		if (at == room) {
			room *= 2;
			more = realloc(bytes, room);
			if (!more)
				free(bytes);
		}
		bytes = more;
	}
	if (!bytes)
		return -ENOMEM;
	if (ferror(file)) {
		free(bytes);
		return -EIO;
	}
	*text = bytes;
	*len = at;
	return 0;
}

int fabric_map_load(const char *path, struct fabric_map **map, struct fabric_error *error)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t len = 0;
	int rc;

	*error = (struct fabric_error){0};
	if (!file)
		return file_fail(error, path, -errno);
	rc = file_read(file, &text, &len);
	fclose(file);
	if (rc)
		return file_fail(error, path, rc);
	rc = fabric_map_parse(text, len, map, error);
	free(text);
	return rc;
}

void fabric_map_free(struct fabric_map *map)
{
	if (!map)
		return;
	for (size_t i = 0; i < map->rows; i++)
		free(map->row[i].host);
	free(map->row);
	free(map->order);
	free(map);
}

/* The row that has it; NULL: none. */
static const struct row *row_find(const struct fabric_map *map, const struct row *want)
{
	size_t low = 0, high = map->rows;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct row *row = &map->row[middle];
		int by = row_order(want, row);

		if (by == 0 && want->from >= row->from && want->from <= row->to)
			return row;
		if (by < 0 || (by == 0 && want->from < row->from))
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

bool fabric_map_host(const struct fabric_map *map, const char *name,
		     struct fabric_host *host)
{
	struct span w = {name, strlen(name)};
	const struct row *row;
	struct row want;

	if (!fabric_name_valid(w.at, w.len, FABRIC_HOST_MAX))
		return false;
	row_single(&want, w);
	row = row_find(map, &want);
	if (!row)
		return false;
	*host = *row->host;
	part_put(host->place.host, w.at, w.len);
	return true;
}

unsigned fabric_map_rails(const struct fabric_map *map)
{
	return map->rails;
}

const struct fabric_rail *fabric_map_rail(const struct fabric_map *map, unsigned rail)
{
	return &map->rail[rail];
}

uint64_t fabric_map_hosts(const struct fabric_map *map)
{
	uint64_t count = 0;

	for (size_t i = 0; i < map->rows; i++)
		count += (uint64_t)map->row[i].to - map->row[i].from + 1;
	return count;
}

/* Of the host with that number; the parser has seen to it that it fits. */
static void name_put(char name[FABRIC_HOST_MAX + 1], const struct row *row,
		     uint32_t number)
{
	const size_t prefix = strlen(row->prefix), suffix = strlen(row->suffix);

	memcpy(name, row->prefix, prefix);
	for (size_t i = row->width; i > 0; i--, number /= 10)
		name[prefix + i - 1] = (char)('0' + number % 10);
	memcpy(name + prefix + row->width, row->suffix, suffix + 1);
}

bool fabric_map_next(const struct fabric_map *map, struct fabric_cursor *at,
		     struct fabric_host *host, unsigned *line)
{
	const struct row *row;

	if (at->row >= map->rows)
		return false;
	row = &map->row[map->order[at->row]];
	*host = *row->host;
	*line = row->line;
	name_put(host->place.host, row, row->from + at->host);
	if (++at->host > row->to - row->from) {
		at->host = 0;
		at->row++;
	}
	return true;
}

const struct fabric_tier *fabric_map_tier(const struct fabric_map *map,
					  enum fabric_distance d)
{
	return d < FABRIC_UNKNOWN && map->tier[d].line ? &map->tier[d] : NULL;
}

uint32_t fabric_map_ranks(const struct fabric_map *map)
{
	return map->ranks ? map->ranks : 1;
}
