/* SPDX-License-Identifier: BSD-2-Clause */
/* See machine.h. A band for each node, one for what is on none; in it devices stand in
 * boxes of what they have in common. Everything is laid out before it is drawn. */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "topo/draw/machine.h"

enum {
	WIDTH = 1280, /* at most */
	NARROW = 960, /* at least: words above and below */
	MARGIN = 24,
	TOP = 96,   /* where bands begin */
	LEFT = 330, /* of a band: its processors */
	PAD = 14,   /* within a band */
	HEAD = 58,  /* of a band: its words */
	DEVICE_W = 188,
	DEVICE_H = 60,
	GAP = 8,
	TITLE = 20, /* of a box of devices */
	ROWS = 4    /* devices above each other, while the band is wide enough */
};

/* Devices below the same port, or bridge. */
struct group {
	int device[HOST_DEVICES_MAX];
	unsigned count, columns;
	int x, y, width, height;
	char title[HOST_NAME];
};

struct page {
	const struct host *host;
	const struct host_share *share;
	unsigned ranks;
	FILE *file;
	int width;
	struct group *group; /* of one band: room for all devices */
};

/* ---- words ------------------------------------------------------------------------ */

static void escaped(FILE *f, const char *words)
{
	for (; *words; words++) {
		if (*words == '<' || *words == '&' || *words == '"')
			fprintf(f, "&#%d;", *words);
		else
			fputc(*words >= ' ' && *words <= '~' ? *words : '?', f);
	}
}

__attribute__((format(printf, 6, 7))) static void text(FILE *f, int x, int y,
						       const char *anchor,
						       const char *style, const char *fmt,
						       ...)
{
	char words[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" %s>", x, y, anchor, style);
	escaped(f, words);
	fprintf(f, "</text>\n");
}

static void box(FILE *f, int x, int y, int w, int h, const char *style)
{
	fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" %s/>\n", x, y, w,
		h, style);
}

/* Cut to what fits, with dots for the rest. */
static void cut(char *to, size_t most, const char *from)
{
	const size_t len = strlen(from);

	memcpy(to, from, len < most ? len : most);
	to[len < most ? len : most] = '\0';
	if (len > most)
		memcpy(to + most - 2, "..", 2);
}

/* ---- devices ---------------------------------------------------------------------- */

/* "rank 0", "ranks 0, 8", cut with dots. */
static void ranks_of(const struct page *p, int device, char out[24])
{
	unsigned count = 0, used = 0;
	char list[64] = "";

	for (unsigned r = 0; r < p->ranks; r++) {
		if (p->share[r].gpu != device && p->share[r].nic != device)
			continue;
		if (used + 12 < sizeof(list))
			used += (unsigned)snprintf(list + used, sizeof(list) - used,
						   "%s%u", count ? "," : "", r);
		count++;
	}
	out[0] = '\0';
	if (!count)
		return;
	snprintf(out, 24, "%s ", count > 1 ? "ranks" : "rank");
	cut(out + strlen(out), 10, list);
}

static void speed_text(char out[24], uint64_t bits_per_s)
{
	if (bits_per_s)
		snprintf(out, 24, "%.4g Gb/s", (double)bits_per_s / 1e9);
	else
		snprintf(out, 24, "speed ?");
}

static const char *const device_style[] = {
	[HOST_GPU] = "rx=\"5\" fill=\"#e3f4e6\" stroke=\"#2f7d41\"",
	[HOST_NIC] = "rx=\"5\" fill=\"#e4eefb\" stroke=\"#2b5fa8\"",
	[HOST_DISPLAY] = "rx=\"5\" fill=\"#f4f4f5\" stroke=\"#a1a1aa\"",
	[HOST_VIRTUAL] =
		"rx=\"5\" fill=\"#ffffff\" stroke=\"#a1a1aa\" stroke-dasharray=\"4 3\"",
};

#define BOLD  "font-weight=\"bold\""
#define SMALL "font-size=\"11\" fill=\"#3f3f46\""
#define MONO  "font-size=\"11\" fill=\"#3f3f46\" font-family=\"monospace\""

static void device_words(const struct host_device *d, char out[32])
{
	char all[3 * HOST_NAME];

	if (d->net[0] || d->rdma[0])
		snprintf(all, sizeof(all), "%s%s%s", d->rdma,
			 d->rdma[0] && d->net[0] ? ", " : "", d->net);
	else if (d->model[0])
		snprintf(all, sizeof(all), "%s", d->model);
	else
		snprintf(all, sizeof(all), "%04x:%04x", d->vendor_id, d->device_id);
	cut(out, 26, all);
}

/* The NIC of the first rank that has that GPU; -1: none. */
static int nic_of(const struct page *p, int gpu)
{
	for (unsigned r = 0; r < p->ranks; r++)
		if (p->share[r].gpu == gpu)
			return p->share[r].nic;
	return -1;
}

/* What is too long for its box is cut at its edge: an svg of its own clips. */
static void device_draw(const struct page *p, int i, int x, int y)
{
	const struct host_device *d = &p->host->device[i];
	const int right = DEVICE_W - 8, nic = d->kind == HOST_GPU ? nic_of(p, i) : -1;
	char words[32], ranks[24], speed[24];

	fprintf(p->file,
		"<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
		"overflow=\"hidden\">\n",
		x, y, DEVICE_W, DEVICE_H);
	fprintf(p->file, "<rect x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" %s/>\n",
		DEVICE_W - 1, DEVICE_H - 1, device_style[d->kind]);
	ranks_of(p, i, ranks);
	speed_text(speed, d->bits_per_s);
	text(p->file, 8, 17, "start", BOLD, "%s%u", host_kind_name(d->kind), d->nth);
	if (d->kind == HOST_NIC || d->bits_per_s)
		text(p->file, right, 17, "end", d->state == HOST_DOWN ? SMALL : BOLD,
		     "%s", d->state == HOST_DOWN ? "down" : speed);
	else if (d->kind == HOST_GPU && nic >= 0)
		text(p->file, right, 17, "end", "", "sends by nic%u",
		     p->host->device[nic].nth);
	device_words(d, words);
	text(p->file, 8, 34, "start", SMALL, "%s", words);
	text(p->file, 8, 51, "start", MONO, "%s", d->pci);
	text(p->file, right, 51, "end", SMALL, "%s", ranks);
	fprintf(p->file, "</svg>\n");
}

/* ---- groups ----------------------------------------------------------------------- */

/* Whether another device meets this one below a port. */
static bool has_switch(const struct host *host, int i)
{
	for (int j = 0; j < (int)host->devices; j++)
		if (j != i && host->device[i].bridges > 1 &&
		    host->device[j].bridges > 1 &&
		    host_near(host, i, j) <= HOST_SAME_SWITCH)
			return true;
	return false;
}

static void group_title(const struct host *host, int i, char title[HOST_NAME])
{
	const struct host_device *d = &host->device[i];

	if (d->kind == HOST_VIRTUAL)
		snprintf(title, HOST_NAME, "without a PCI device");
	else if (!d->bridges)
		snprintf(title, HOST_NAME, "bridges not known");
	else if (has_switch(host, i))
		snprintf(title, HOST_NAME, "switch at %s", d->bridge[1]);
	else
		snprintf(title, HOST_NAME, "host bridge %s", d->bridge[0]);
}

static unsigned groups_make(const struct page *p, int node)
{
	unsigned groups = 0;

	for (int i = 0; i < (int)p->host->devices; i++) {
		char title[HOST_NAME];
		unsigned g = 0;

		if (p->host->device[i].node != node)
			continue;
		group_title(p->host, i, title);
		while (g < groups && strcmp(p->group[g].title, title) != 0)
			g++;
		if (g == groups) {
			memset(&p->group[g], 0, sizeof(p->group[g]));
			memcpy(p->group[groups++].title, title, sizeof(title));
		}
		p->group[g].device[p->group[g].count++] = i;
	}
	return groups;
}

/* Side by side and then below; returns the height. The page is as wide as need be. */
static int groups_place(struct page *p, unsigned groups)
{
	const int begin = MARGIN + LEFT + PAD, end = WIDTH - MARGIN - PAD;
	const unsigned widest = (unsigned)((end - begin - GAP) / (DEVICE_W + GAP));
	int x = begin, y = 0, tallest = 0;

	for (unsigned i = 0; i < groups; i++) {
		struct group *g = &p->group[i];
		unsigned rows;

		g->columns = (g->count + ROWS - 1) / ROWS;
		if (g->columns > widest)
			g->columns = widest;
		rows = (g->count + g->columns - 1) / g->columns;
		g->width = (int)g->columns * (DEVICE_W + GAP) + GAP;
		g->height = TITLE + (int)rows * (DEVICE_H + GAP);
		if (x > begin && x + g->width > end) {
			x = begin;
			y += tallest + GAP;
			tallest = 0;
		}
		g->x = x;
		g->y = y;
		x += g->width + GAP;
		if (x - GAP + PAD + MARGIN > p->width)
			p->width = x - GAP + PAD + MARGIN;
		tallest = g->height > tallest ? g->height : tallest;
	}
	return y + tallest;
}

static void group_draw(const struct page *p, const struct group *g, int top)
{
	const unsigned rows = (g->count + g->columns - 1) / g->columns;

	box(p->file, g->x, top + g->y, g->width, g->height,
	    "rx=\"6\" fill=\"#fafafa\" stroke=\"#d4d4d8\"");
	text(p->file, g->x + GAP, top + g->y + 14, "start", SMALL, "%s", g->title);
	for (unsigned i = 0; i < g->count; i++)
		device_draw(p, g->device[i],
			    g->x + GAP + (int)(i / rows) * (DEVICE_W + GAP),
			    top + g->y + TITLE + (int)(i % rows) * (DEVICE_H + GAP));
}

/* ---- cores ------------------------------------------------------------------------ */

/* Large squares that hold a number while they are few. */
static int cell_of(unsigned cores)
{
	return cores <= 96 ? 24 : cores <= 288 ? 14 : 7;
}

static int cores_height(unsigned cores)
{
	const int cell = cell_of(cores);
	const unsigned row = (unsigned)((LEFT - 2 * PAD) / cell);

	return (int)((cores + row - 1) / row) * cell;
}

enum role { ROLE_NONE, ROLE_RANK, ROLE_PROGRESS };

static enum role role_of(const struct page *p, int core, unsigned *rank)
{
	for (unsigned r = 0; r < p->ranks; r++) {
		*rank = r;
		if (p->share[r].core == core)
			return ROLE_RANK;
		if (p->share[r].progress == core)
			return ROLE_PROGRESS;
	}
	return ROLE_NONE;
}

static const char *core_style(const struct host_core *core, enum role role)
{
	if (!core->usable)
		return "fill=\"#ffffff\" stroke=\"#a1a1aa\" stroke-dasharray=\"2 2\"";
	if (role == ROLE_RANK)
		return "fill=\"#2f7d41\"";
	return role == ROLE_PROGRESS ? "fill=\"#2b5fa8\"" : "fill=\"#d4d4d8\"";
}

static void cores_draw(const struct page *p, int node, unsigned cores, int top)
{
	const int cell = cell_of(cores);
	const int row = (LEFT - 2 * PAD) / cell;
	int at = 0;

	for (int c = 0; c < (int)p->host->cores; c++) {
		const struct host_core *core = &p->host->core[c];
		unsigned rank = 0;
		const enum role role = role_of(p, c, &rank);
		int x, y;

		if (core->node != node)
			continue;
		x = MARGIN + PAD + at % row * cell;
		y = top + at / row * cell;
		at++;
		box(p->file, x, y, cell - 2, cell - 2, core_style(core, role));
		if (role != ROLE_NONE && cell >= 24 && rank < 1000)
			text(p->file, x + cell / 2 - 1, y + cell / 2 + 3, "middle",
			     "font-size=\"10\" fill=\"#ffffff\"", "%u", rank);
	}
}

static unsigned cores_count(const struct host *host, int node)
{
	unsigned n = 0;

	for (unsigned c = 0; c < host->cores; c++)
		n += host->core[c].node == node;
	return n;
}

/* ---- bands ------------------------------------------------------------------------ */

static void caches_words(const struct host *host, int node, char *out, size_t size)
{
	int last = -1;
	unsigned caches = 0;

	out[0] = '\0';
	for (unsigned c = 0; c < host->cores; c++) {
		if (host->core[c].node != node || host->core[c].cache < 0 ||
		    host->core[c].cache == last)
			continue;
		last = host->core[c].cache;
		caches++;
	}
	if (caches)
		snprintf(out, size, "%u x L%d of %.4g MiB", caches,
			 host->cache[last].level,
			 (double)host->cache[last].bytes / (1 << 20));
}

static void band_words(const struct page *p, int node, unsigned cores, int y)
{
	const struct host_node *n = node >= 0 ? &p->host->node[node] : NULL;
	char caches[64];

	caches_words(p->host, node, caches, sizeof(caches));
	if (!n)
		text(p->file, MARGIN + PAD, y + 22, "start", BOLD, "NUMA node not known");
	else if (n->package >= 0)
		text(p->file, MARGIN + PAD, y + 22, "start", BOLD,
		     "NUMA node %d, package %d", n->id, n->package);
	else
		text(p->file, MARGIN + PAD, y + 22, "start", BOLD, "NUMA node %d", n->id);
	if (n && n->memory)
		text(p->file, MARGIN + PAD, y + 39, "start", SMALL, "%.1f GiB%s%s",
		     (double)n->memory / (1 << 30), caches[0] ? ", " : "", caches);
	else
		text(p->file, MARGIN + PAD, y + 39, "start", SMALL, "%s", caches);
	if (n && n->usable < n->cores)
		text(p->file, MARGIN + PAD, y + 54, "start", SMALL,
		     "%u cores, %u of them usable", cores, n->usable);
	else if (cores)
		text(p->file, MARGIN + PAD, y + 54, "start", SMALL, "%u core%s", cores,
		     cores > 1 ? "s" : "");
}

/* Returns its height; draws nothing where `draw` is false. */
static int band(struct page *p, int node, int y, bool draw)
{
	const unsigned cores = cores_count(p->host, node), groups = groups_make(p, node);
	const int left = HEAD + (cores ? 8 + cores_height(cores) : 0) + PAD,
		  right = groups_place(p, groups) + 2 * PAD;
	const int height = left > right ? left : right;

	if (node < 0 && !cores && !groups)
		return 0;
	if (!draw)
		return height + PAD;
	box(p->file, MARGIN, y, p->width - 2 * MARGIN, height,
	    "rx=\"8\" fill=\"#ffffff\" stroke=\"#71717a\"");
	band_words(p, node, cores, y);
	cores_draw(p, node, cores, y + HEAD + 8);
	for (unsigned g = 0; g < groups; g++)
		group_draw(p, &p->group[g], y + PAD);
	if (!groups)
		text(p->file, MARGIN + LEFT + PAD, y + 34, "start", SMALL,
		     "no GPU and no NIC here");
	return height + PAD;
}

static void legend(const struct page *p, int y)
{
	static const struct {
		const char *style, *words;
	} keys[] = {
		{"fill=\"#2f7d41\"", "core of a rank"},
		{"fill=\"#2b5fa8\"", "core of its progress thread"},
		{"fill=\"#d4d4d8\"", "other core"},
		{"fill=\"#ffffff\" stroke=\"#a1a1aa\" stroke-dasharray=\"2 2\"",
		 "core that may not be used"},
	};
	int x = MARGIN;

	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		box(p->file, x, y - 11, 13, 13, keys[i].style);
		text(p->file, x + 20, y, "start", SMALL, "%s", keys[i].words);
		x += 40 + 6 * (int)strlen(keys[i].words);
	}
	if (p->host->gaps)
		text(p->file, p->width - MARGIN, y, "end", SMALL,
		     "not known: %u thing%s, which weft topo names", p->host->gaps,
		     p->host->gaps > 1 ? "s" : "");
}

/* Every host has some of these. */
static void known(char out[32], const char *what, unsigned count)
{
	if (count)
		snprintf(out, 32, "%u %s%s", count, what, count == 1 ? "" : "s");
	else
		snprintf(out, 32, "%ss not known", what);
}

static void head(const struct page *p, const char *name)
{
	const struct host *h = p->host;
	const unsigned gpus = host_count(h, HOST_GPU), nics = host_count(h, HOST_NIC);
	char packages[32], nodes[32], cores[32];

	known(packages, "package", h->packages);
	known(nodes, "NUMA node", h->nodes);
	known(cores, "core", h->cores);
	text(p->file, MARGIN, 40, "start", "font-size=\"20\" font-weight=\"bold\"", "%s",
	     name ? name : "A host");
	text(p->file, MARGIN, 62, "start", "",
	     "%s, %s, %s, %u hardware thread%s, %u GPU%s, %u NIC%s", packages, nodes,
	     cores, h->cpus, h->cpus == 1 ? "" : "s", gpus, gpus == 1 ? "" : "s", nics,
	     nics == 1 ? "" : "s");
	text(p->file, MARGIN, 80, "start", SMALL, "as %s has it, with %u rank%s",
	     h->source, p->ranks, p->ranks == 1 ? "" : "s");
}

bool machine_draw(const struct host *host, const char *name,
		  const struct host_share *share, unsigned ranks, FILE *file)
{
	struct page p = {.host = host,
			 .share = share,
			 .ranks = ranks,
			 .file = file,
			 .width = NARROW};
	int height = TOP, y = TOP;

	p.group = calloc(host->devices + 1, sizeof(*p.group));
	if (!p.group)
		return false;
	for (int node = -1; node < (int)host->nodes; node++)
		height += band(&p, node, 0, false);
	height += 40;
	fprintf(file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
		p.width, height, p.width, height);
	head(&p, name);
	for (int node = 0; node < (int)host->nodes; node++)
		y += band(&p, node, y, true);
	y += band(&p, -1, y, true);
	legend(&p, y + 14);
	fprintf(file, "</svg>\n");
	free(p.group);
	return !ferror(file);
}
