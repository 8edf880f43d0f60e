/* SPDX-License-Identifier: BSD-2-Clause */
/* See plot.h. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "topo/draw/plot.h"

enum { WIDTH = 960, HEIGHT = 600, LEFT = 90, RIGHT = 230, TOP = 50, BOTTOM = 70 };

/* Told apart also without colours: each has its own dashes. */
static const struct {
	const char *colour, *dash;
} styles[] = {{"#0b5fa5", "none"},     {"#c2410c", "8 4"}, {"#15803d", "2 3"},
	      {"#7e22ce", "10 3 2 3"}, {"#b91c1c", "5 2"}, {"#334155", "none"}};
#define STYLES (sizeof(styles) / sizeof(styles[0]))

struct axis {
	double from, to;
	bool linear;
	double at, length; /* on the page; length below 0: upwards */
};

struct plot_curve *plot_curve(struct plot *plot, const char *name)
{
	struct plot_curve *c;

	for (unsigned i = 0; i < plot->curves; i++)
		if (strcmp(plot->curve[i].name, name) == 0)
			return &plot->curve[i];
	if (plot->curves == PLOT_CURVES_MAX)
		return NULL;
	c = &plot->curve[plot->curves++];
	snprintf(c->name, sizeof(c->name), "%s", name);
	return c;
}

bool plot_point(struct plot_curve *curve, double x, double y)
{
	if (curve->count == PLOT_POINTS_MAX)
		return false;
	curve->x[curve->count] = x;
	curve->low[curve->count] = curve->high[curve->count] = NAN;
	curve->y[curve->count++] = y;
	return true;
}

bool plot_band(struct plot_curve *curve, double x, double y, double low, double high)
{
	if (!plot_point(curve, x, y))
		return false;
	curve->low[curve->count - 1] = low;
	curve->high[curve->count - 1] = high;
	curve->has_band = true;
	return true;
}

static double page_of(const struct axis *a, double value)
{
	const double part = a->linear ? (value - a->from) / (a->to - a->from)
				      : log(value / a->from) / log(a->to / a->from);

	return a->at + a->length * part;
}

/* Whole steps: powers of `base`, or ten of a round number. */
static void axis_round(struct axis *a, double base)
{
	if (a->linear) {
		const double step =
			pow(10, floor(log10(a->to > a->from ? a->to - a->from : 1)));

		a->from = floor(a->from / step) * step;
		a->to = ceil(a->to / step) * step;
		if (a->to <= a->from)
			a->to = a->from + step;
		return;
	}
	a->from = pow(base, floor(log(a->from) / log(base) + 1e-9));
	a->to = pow(base, ceil(log(a->to) / log(base) - 1e-9));
	if (a->to <= a->from)
		a->to = a->from * base;
}

static void limits(const struct plot *p, struct axis *x, struct axis *y)
{
	bool first = true;

	for (unsigned i = 0; i < p->curves; i++) {
		for (unsigned j = 0; j < p->curve[i].count; j++) {
			const struct plot_curve *c = &p->curve[i];
			const double px = c->x[j];
			const double low = fmin(c->low[j], c->y[j]),
				     high = fmax(c->high[j], c->y[j]); /* not NAN */

			x->from = first || px < x->from ? px : x->from;
			x->to = first || px > x->to ? px : x->to;
			y->from = first || low < y->from ? low : y->from;
			y->to = first || high > y->to ? high : y->to;
			first = false;
		}
	}
	if (first)
		x->from = y->from = x->to = y->to = 1;
	if (y->linear)
		y->from = 0;
	axis_round(x, 2);
	axis_round(y, 10);
}

static void text(FILE *f, double x, double y, const char *anchor, const char *words)
{
	fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
	for (; *words; words++) {
		if (*words == '<' || *words == '&')
			fprintf(f, "&#%d;", *words);
		else
			fputc(*words, f);
	}
	fprintf(f, "</text>\n");
}

/* The next line of the grid behind `at`. */
static double grid_next(const struct axis *a, double at, double base)
{
	return a->linear ? at + (a->to - a->from) / 10 : at * base;
}

static void label_x(double v, bool bytes, char text[32])
{
	static const char units[] = " KMGTP";
	int unit = 0;

	for (; bytes && v >= 1024 && unit < 5; unit++)
		v /= 1024;
	snprintf(text, 32, v < 1e6 ? "%.6g%.1s" : "%.3g%.1s", v,
		 unit ? units + unit : "");
}

static void grid(FILE *f, const struct axis *x, const struct axis *y, bool bytes_x)
{
	/* Not more lines than can be read. */
	const double base_x = x->linear || x->to / x->from <= 4096 ? 2 : 4;
	char label[32];

	for (double v = x->from; v <= x->to * (1 + 1e-9); v = grid_next(x, v, base_x)) {
		const double at = page_of(x, v);

		fprintf(f, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#d4d4d8\"/>\n", at,
			y->at, y->at + y->length);
		label_x(v, bytes_x, label);
		text(f, at, y->at + 20, "middle", label);
	}
	for (double v = y->from; v <= y->to * (1 + 1e-9); v = grid_next(y, v, 10)) {
		const double at = page_of(y, v);

		fprintf(f, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#d4d4d8\"/>\n", x->at,
			at, x->at + x->length);
		snprintf(label, sizeof(label), "%.4g", v);
		text(f, x->at - 8, at + 4, "end", label);
	}
	fprintf(f,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
		"fill=\"none\" "
		"stroke=\"#18181b\"/>\n",
		x->at, y->at + y->length, x->length, -y->length);
}

static void band_draw(FILE *f, const struct plot_curve *c, unsigned i,
		      const struct axis *x, const struct axis *y)
{
	for (unsigned j = 0; j + 1 < c->count; j++) {
		const double from = page_of(x, c->x[j]), to = page_of(x, c->x[j + 1]);

		if (isnan(c->low[j]) || isnan(c->low[j + 1]))
			continue;
		fprintf(f,
			"<polygon class=\"band\" fill=\"%s\" fill-opacity=\"0.18\" "
			"points=\"%.2f,%.2f %.2f,%.2f %.2f,%.2f %.2f,%.2f\"/>\n",
			styles[i % STYLES].colour, from, page_of(y, c->high[j]), to,
			page_of(y, c->high[j + 1]), to, page_of(y, c->low[j + 1]), from,
			page_of(y, c->low[j]));
	}
}

static void curve_draw(FILE *f, const struct plot_curve *c, unsigned i,
		       const struct axis *x, const struct axis *y)
{
	const char *colour = styles[i % STYLES].colour;
	const double beside = WIDTH - RIGHT + 15, below = TOP + 15 + 22.0 * i;

	fprintf(f,
		"<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" "
		"stroke-dasharray=\"%s\" points=\"",
		colour, styles[i % STYLES].dash);
	for (unsigned j = 0; j < c->count; j++)
		fprintf(f, "%.2f,%.2f ", page_of(x, c->x[j]), page_of(y, c->y[j]));
	fprintf(f, "\"/>\n");
	for (unsigned j = 0; j < c->count && c->count <= 24; j++)
		fprintf(f, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3\" fill=\"%s\"/>\n",
			page_of(x, c->x[j]), page_of(y, c->y[j]), colour);
	fprintf(f,
		"<path d=\"M%.1f %.1fh26\" stroke=\"%s\" stroke-width=\"2\" "
		"stroke-dasharray=\"%s\"/>\n",
		beside, below, colour, styles[i % STYLES].dash);
	text(f, beside + 32, below + 4, "start", c->name);
}

bool plot_write(const struct plot *plot, FILE *file)
{
	struct axis x = {
		.linear = plot->linear_x, .at = LEFT, .length = WIDTH - LEFT - RIGHT};
	struct axis y = {.linear = plot->linear_y,
			 .at = HEIGHT - BOTTOM,
			 .length = -(HEIGHT - BOTTOM - TOP)};

	limits(plot, &x, &y);
	fprintf(file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	fprintf(file, "<g font-size=\"17\">\n");
	text(file, LEFT, 30, "start", plot->title);
	fprintf(file, "</g>\n");
	grid(file, &x, &y, plot->bytes_x);
	for (unsigned i = 0; i < plot->curves; i++)
		if (plot->curve[i].has_band)
			band_draw(file, &plot->curve[i], i, &x, &y);
	for (unsigned i = 0; i < plot->curves; i++)
		curve_draw(file, &plot->curve[i], i, &x, &y);
	text(file, LEFT + x.length / 2, HEIGHT - 22, "middle", plot->x);
	fprintf(file, "<g transform=\"translate(22 %.1f) rotate(-90)\">\n",
		TOP - y.length / 2);
	text(file, 0, 0, "middle", plot->y);
	fprintf(file, "</g>\n</svg>\n");
	return !ferror(file);
}
