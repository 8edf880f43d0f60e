/* SPDX-License-Identifier: BSD-2-Clause */
/* A picture of curves as SVG: both axes by powers, on a white page, names beside it. */
#ifndef WEFT_TOPO_DRAW_PLOT_H
#define WEFT_TOPO_DRAW_PLOT_H

#include <stdbool.h>
#include <stdio.h>

enum { PLOT_CURVES_MAX = 12, PLOT_POINTS_MAX = 64 };

struct plot_curve {
	char name[64];
	double x[PLOT_POINTS_MAX], y[PLOT_POINTS_MAX]; /* above 0 */
	double low[PLOT_POINTS_MAX],
		high[PLOT_POINTS_MAX]; /* of a band; where has_band */
	bool has_band;		       /* at any point; NAN where not */
	unsigned count;
};

struct plot {
	const char *title, *x, *y; /* what axes say, with units */
	struct plot_curve curve[PLOT_CURVES_MAX];
	unsigned curves;
	bool bytes_x;		 /* 64K, 1M: powers of 1024 */
	bool linear_x, linear_y; /* not by powers; may be 0 then */
};

/* The curve of that name, a new one if need be; NULL: there are too many. */
struct plot_curve *plot_curve(struct plot *plot, const char *name);
/* False: it is full. */
bool plot_point(struct plot_curve *curve, double x, double y);

/* The same with what it lies between, which is drawn as a band: 0 < low <= high. From one
 * point to the next, where both have it. */
bool plot_band(struct plot_curve *curve, double x, double y, double low, double high);

/* False: it cannot be written. */
bool plot_write(const struct plot *plot, FILE *file);

#endif
