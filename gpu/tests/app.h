/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An application that uses a GPU, for tests: calls of the driver that Weft itself does
 * not make. The same code runs on the stand-in and on a device: the stand-in that lies in
 * the build tree is loaded first and has the driver's name, so that whoever asks for the
 * driver gets it; with WEFT_TEST_GPU=1 it is not loaded.
 */
#ifndef WEFT_GPU_TESTS_APP_H
#define WEFT_GPU_TESTS_APP_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/gpu.h"

struct app;

/* Loads the stand-in only; ends the program where it is not there. */
void app_mock_load(void);

/* Loads a driver. NULL: there is none; says so in a diagnosis. Before gpu_open(). */
struct app *app_open(void);
bool app_on_mock(const struct app *app);
/* Sets a knob of the stand-in; ends the program where there is no such thing. */
void app_knob(struct app *app, const char *knob, long value);

/* The backend, from the build tree; ends the program where it is not the one for a GPU.
 */
struct gpu *app_gpu(struct app *app);

/* What follows ends the program where the driver does not do it. The device's context is
 * made current. */
void app_device(struct app *app, int device);
uint64_t app_alloc(struct app *app, uint64_t len); /* cuMemAlloc, cuMemFree */
void app_free(struct app *app, uint64_t addr);
uint64_t app_managed(struct app *app, uint64_t len);
/* A reserved range of `pieces` mapped pieces of `len` bytes each. */
uint64_t app_map(struct app *app, int device, uint64_t len, int pieces, bool exportable);
void app_unmap(struct app *app, uint64_t addr, uint64_t len, int pieces);
/* Another piece in the place of number `at` of them. */
void app_remap(struct app *app, int device, uint64_t addr, uint64_t len, int at,
	       bool exportable);

/* Captures what is put on the stream until app_capture_end(), which is NULL where the
 * capture was broken. Mode as the driver has it: 0 global, 1 thread, 2 relaxed. */
void app_capture_begin(struct app *app, void *stream, int mode);
void *app_capture_end(struct app *app, void *stream);
void app_graph_launch(struct app *app, void *graph, void *stream);
void app_graph_free(struct app *app, void *graph);

#endif
