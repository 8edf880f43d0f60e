/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding a backend: every way in which there is none ends with the null backend and a
 * sentence that says why. Each in a process of its own, since a driver is loaded once. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/gpu.h"
#include "gpu/tests/app.h"
#include "util/tap.h"
#include "util/tap_fork.h"

/* In the child: what is opened has this name and its reason this text. */
static int look(const char *library, const char *name, const char *text)
{
	struct gpu *gpu = NULL;
	const struct gpu_opts opts = {.library = library};
	int bad;

	if (gpu_open(library ? &opts : NULL, &gpu) != 0 || !gpu)
		return 1;
	bad = strcmp(gpu->name, name) != 0 || !strstr(gpu->why, text);
	if (bad)
		tap_diag("got %s, \"%s\"; want %s, \"%s\"", gpu->name, gpu->why, name,
			 text);
	gpu_close(gpu);
	return bad;
}

struct miss {
	const char *what;
	const char *mock;    /* knobs; NULL: no driver at all */
	const char *library; /* a name; NULL: the one of the build tree */
	const char *text;
};

static const struct miss misses[] = {
	{"no library of that name", "", "/nowhere/libweft-gpu.so",
	 "/nowhere/libweft-gpu.so"},
	{"a library that is none of ours", "", "libc.so.6", "it has no weft_gpu_backend"},
	{"turned off", "", "none", "turned off"},
	{"no driver", NULL, NULL, "no CUDA driver"},
	{"a driver that is too old", "driver=11000", NULL, "Install a newer driver"},
	{"a driver that lacks what we need", "driver=11020", NULL, "of version 11.4"},
	{"no device", "devices=0", NULL, "sees no GPU"},
	{"a driver that does not start", "error=999", NULL, "999"},
};

static int child(const struct miss *miss, const char *ours)
{
	if (miss->mock) {
		setenv("WEFT_MOCK", miss->mock, 1);
		app_mock_load();
	}
	return look(miss->library ? miss->library : ours, "null", miss->text);
}

static int status_of(pid_t pid)
{
	int status = -1;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	char ours[4096];
	struct app *app;
	struct gpu *gpu;
	pid_t pid;

	snprintf(ours, sizeof(ours), "%s/.libs/libweft-gpu.so",
		 getenv("WEFT_TOP_BUILDDIR"));
	unsetenv("WEFT_GPU_LIB");
	for (size_t i = 0; i < sizeof(misses) / sizeof(misses[0]); i++) {
		pid = tap_fork();
		if (pid == 0)
			_exit(child(&misses[i], ours));
		tap_is_int(status_of(pid), 0, misses[i].what);
	}
	pid = tap_fork();
	if (pid == 0) {
		setenv("WEFT_GPU_LIB", ours, 1);
		app_mock_load();
		_exit(look(NULL, "cuda", "CUDA driver 12.8"));
	}
	tap_is_int(status_of(pid), 0, "the library that the environment names is taken");

	app = app_open();
	if (!app)
		return 1;
	gpu = app_gpu(app);
	tap_is_int(gpu->devices, 2, "two devices");
	tap_is_str(gpu->device[1].pci, "0000:a1:00.0", "where the second is");
	tap_ok(gpu->device[0].major == 9 && gpu->device[0].blocks == 4 &&
		       gpu->device[0].memory == 16ull << 30,
	       "what the first has");
	tap_ok(memcmp(gpu->device[0].uuid, gpu->device[1].uuid, GPU_UUID_LEN) != 0,
	       "they can be told apart");
	gpu_close(gpu);
	return tap_done();
}
