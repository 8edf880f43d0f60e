/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json_schema SCHEMA FILE: whether the document in FILE is as the schema says. Knows what
 * the schemas of this folder's commands use: type, properties, required,
 * additionalProperties, items, enum, const, minimum, minLength and $ref to #/$defs;
 * another keyword is an error, so that none is passed over. Status 0, or 1 and what is
 * wrong where.
 */
#include "config.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NONE, OBJECT, ARRAY, STRING, NUMBER, TRUE, FALSE, NIL };

enum { DEPTH = 64 };

struct node {
	enum kind kind;
	char *key;  /* of a member */
	char *text; /* of a string; of a number as it is written */
	struct node *child, *next;
};

struct parser {
	const char *at;
	int depth;
};

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void space(struct parser *p)
{
	while (*p->at && strchr(" \t\r\n", *p->at))
		p->at++;
}

static void want(struct parser *p, char c)
{
	space(p);
	if (*p->at != c)
		die("not JSON: '%c' is wanted at \"%.20s\"", c, p->at);
	p->at++;
}

/* Escapes stay as they are written: names and values of ours have none. */
static char *string(struct parser *p)
{
	const char *begin;

	want(p, '"');
	begin = p->at;
	while (*p->at && *p->at != '"')
		p->at += *p->at == '\\' && p->at[1] ? 2 : 1;
	if (!*p->at)
		die("not JSON: a text without an end");
	p->at++;
	return strndup(begin, (size_t)(p->at - 1 - begin));
}

static struct node *value(struct parser *p);

static void members(struct parser *p, struct node *n, char end)
{
	struct node **last = &n->child;

	p->at++;
	if (++p->depth > DEPTH)
		die("not JSON of ours: too deep");
	space(p);
	while (*p->at != end) {
		char *key = NULL;

		if (n->child)
			want(p, ',');
		if (n->kind == OBJECT) {
			key = string(p);
			want(p, ':');
		}
		*last = value(p);
		(*last)->key = key;
		last = &(*last)->next;
		space(p);
	}
	p->at++;
	p->depth--;
}

static bool word(struct parser *p, const char *text)
{
	const size_t len = strlen(text);

	if (strncmp(p->at, text, len) != 0)
		return false;
	p->at += len;
	return true;
}

static struct node *value(struct parser *p)
{
	struct node *n = calloc(1, sizeof(*n));
	char *end;

	if (!n)
		die("no memory");
	space(p);
	if (*p->at == '{' || *p->at == '[') {
		n->kind = *p->at == '{' ? OBJECT : ARRAY;
		members(p, n, n->kind == OBJECT ? '}' : ']');
	} else if (*p->at == '"') {
		n->kind = STRING;
		n->text = string(p);
	} else if (word(p, "true")) {
		n->kind = TRUE;
	} else if (word(p, "false")) {
		n->kind = FALSE;
	} else if (word(p, "null")) {
		n->kind = NIL;
	} else {
		if (!isdigit((unsigned char)*p->at) && *p->at != '-')
			die("not JSON: a value is wanted at \"%.20s\"", p->at);
		(void)strtod(p->at, &end);
		n->kind = NUMBER;
		n->text = strndup(p->at, (size_t)(end - p->at));
		p->at = end;
	}
	return n;
}

static struct node *document(const char *path)
{
	static char text[4 << 20];
	struct parser p = {.at = text};
	FILE *f = fopen(path, "re");
	struct node *n;
	size_t len;

	if (!f)
		die("%s cannot be read", path);
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	if (len == sizeof(text) - 1)
		die("%s is too long", path);
	text[len] = '\0';
	n = value(&p);
	space(&p);
	if (*p.at)
		die("not JSON: \"%.20s\" is behind its end", p.at);
	return n;
}

static const struct node *member(const struct node *n, const char *key)
{
	for (const struct node *m = n->kind == OBJECT ? n->child : NULL; m; m = m->next)
		if (strcmp(m->key, key) == 0)
			return m;
	return NULL;
}

/* ---- the schema -------------------------------------------------------------------- */

static const struct node *root;

static bool is_type(const struct node *n, const char *type)
{
	static const char *const names[] = {"",	      "object",	 "array",   "string",
					    "number", "boolean", "boolean", "null"};

	if (strcmp(type, "integer") == 0)
		return n->kind == NUMBER && !strpbrk(n->text, ".eE");
	return strcmp(type, names[n->kind]) == 0;
}

static bool same(const struct node *a, const struct node *b)
{
	return a->kind == b->kind && (!a->text || strcmp(a->text, b->text) == 0);
}

static void check(const struct node *n, const struct node *schema, const char *path);

static const struct node *resolve(const char *ref)
{
	const struct node *defs = member(root, "$defs"), *to;

	to = strncmp(ref, "#/$defs/", 8) == 0 && defs ? member(defs, ref + 8) : NULL;
	if (!to)
		die("the schema has no %s", ref);
	return to;
}

static void check_members(const struct node *n, const struct node *schema,
			  const char *path)
{
	const struct node *known = member(schema, "properties");
	const struct node *others = member(schema, "additionalProperties");
	const struct node *must = member(schema, "required");
	char at[512];

	for (const struct node *r = must ? must->child : NULL; r; r = r->next)
		if (n->kind == OBJECT && !member(n, r->text))
			die("%s: \"%s\" is missing", path, r->text);
	for (const struct node *m = n->kind == OBJECT ? n->child : NULL; m; m = m->next) {
		const struct node *s = known ? member(known, m->key) : NULL;

		snprintf(at, sizeof(at), "%.400s.%.100s", path, m->key);
		if (s)
			check(m, s, at);
		else if (others && others->kind == FALSE)
			die("%s: nobody knows this member", at);
		else if (others && others->kind == OBJECT)
			check(m, others, at);
	}
}

static void check_value(const struct node *n, const struct node *key, const char *path)
{
	const struct node *one = key->child;

	if (strcmp(key->key, "type") == 0) {
		if (key->kind == STRING && !is_type(n, key->text))
			die("%s is no %s", path, key->text);
		while (key->kind == ARRAY && one && !is_type(n, one->text))
			one = one->next;
		if (key->kind == ARRAY && !one)
			die("%s is of none of its types", path);
	} else if (strcmp(key->key, "enum") == 0) {
		while (one && !same(n, one))
			one = one->next;
		if (!one)
			die("%s is \"%s\", none of those it may be", path,
			    n->text ? n->text : "");
	} else if (strcmp(key->key, "const") == 0) {
		if (!same(n, key))
			die("%s is not \"%s\"", path, key->text ? key->text : "");
	} else if (strcmp(key->key, "minimum") == 0) {
		if (n->kind == NUMBER && atof(n->text) < atof(key->text))
			die("%s is %s, less than %s", path, n->text, key->text);
	} else if (strcmp(key->key, "minLength") == 0) {
		if (n->kind == STRING && strlen(n->text) < (size_t)atol(key->text))
			die("%s is too short", path);
	}
}

static void check(const struct node *n, const struct node *schema, const char *path)
{
	static const char *const knows[] = {
		"$schema",    "$id",	     "$defs",
		"$ref",	      "title",	     "type",
		"properties", "required",    "items",
		"enum",	      "const",	     "minimum",
		"minLength",  "description", "additionalProperties",
	};
	char at[512];

	for (const struct node *k = schema->child; k; k = k->next) {
		size_t i = 0;

		while (i < sizeof(knows) / sizeof(knows[0]) &&
		       strcmp(knows[i], k->key) != 0)
			i++;
		if (i == sizeof(knows) / sizeof(knows[0]))
			die("the schema's \"%s\" is not known here", k->key);
		check_value(n, k, path);
		if (strcmp(k->key, "$ref") == 0)
			check(n, resolve(k->text), path);
		if (strcmp(k->key, "items") == 0 && n->kind == ARRAY) {
			int nth = 0;

			for (const struct node *e = n->child; e; e = e->next) {
				snprintf(at, sizeof(at), "%.480s[%d]", path, nth++);
				check(e, k, at);
			}
		}
	}
	check_members(n, schema, path);
}

static void document_free(struct node *n)
{
	while (n) {
		struct node *next = n->next;

		document_free(n->child);
		free(n->key);
		free(n->text);
		free(n);
		n = next;
	}
}

int main(int argc, char **argv)
{
	struct node *schema, *shown;

	if (argc != 3)
		die("usage: json_schema SCHEMA FILE");
	root = schema = document(argv[1]);
	shown = document(argv[2]);
	check(shown, root, "$");
	document_free(shown);
	document_free(schema);
	return 0;
}
