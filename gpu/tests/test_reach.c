/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose memory it is when it is in pieces, freed, or another device's; and DMA buffers of
 * it: whole pages, several pieces, the mapping of the bus first, refusals. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/gpu.h"
#include "gpu/tests/app.h"
#include "util/tap.h"

#define PIECE (2u << 20)

static struct app *app;
static struct gpu *gpu;

static void *at(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

static struct gpu_range range_of(uint64_t addr, uint64_t len)
{
	struct gpu_range r = {.kind = GPU_MEM_HOST};

	if (gpu_query(gpu, at(addr), len, &r) != 0)
		tap_diag("query: %s", gpu_error(gpu));
	return r;
}

static void allocated(void)
{
	const uint64_t addr = app_alloc(app, 100000);
	struct gpu_range r = range_of(addr + 99, 1000), again;
	uint64_t same;

	tap_ok(r.kind == GPU_MEM_DEVICE && r.device == 0 && r.base == addr &&
		       r.len >= 100000 && r.whole && r.ipc && !r.vmm,
	       "an allocation of the driver, asked from its middle");
	r = range_of(addr + 1000, 1u << 22);
	tap_ok(!r.whole, "more than the allocation is not in one piece");
	r = range_of(addr, 1);
	app_free(app, addr);
	again = range_of(addr, 1);
	tap_ok(again.kind == GPU_MEM_HOST && again.id == 0,
	       "freed: the driver knows it no more");
	same = app_alloc(app, 100000);
	if (same == addr) {
		again = range_of(addr, 1);
		tap_ok(again.id && again.id != r.id,
		       "allocated anew at one address: another id");
	} else {
		tap_skip(1, "the driver gave another address");
	}
	app_free(app, same);
	same = app_managed(app, 4096);
	r = range_of(same, 1);
	tap_ok(r.kind == GPU_MEM_MANAGED && r.device == -1,
	       "managed memory is no device's");
	app_free(app, same);
}

static void pieces(void)
{
	const uint64_t addr = app_map(app, 0, PIECE, 3, true);
	struct gpu_range a = range_of(addr, 3 * PIECE),
			 b = range_of(addr + PIECE + 5, 10);
	struct gpu_range c;

	tap_ok(a.kind == GPU_MEM_DEVICE && !a.whole && a.base == addr && a.len == PIECE &&
		       a.reserved_base == addr && a.reserved_len == 3 * PIECE,
	       "three pieces in one reserved range: the first of them is found");
	tap_ok(b.base == addr + PIECE && b.len == PIECE && b.id != a.id && b.whole,
	       "the second is another piece with another id");
	tap_ok(b.vmm && b.fd && !b.ipc && b.rdma,
	       "of mapped memory that can be exported");
	app_remap(app, 0, addr, PIECE, 1, true);
	c = range_of(addr + PIECE, 10);
	tap_ok(c.id != b.id, "mapped anew at one address: another id");
	tap_is_int((int64_t)range_of(addr, 1).id, (int64_t)a.id,
		   "and the first has its own");
	app_unmap(app, addr, PIECE, 3);
	if (gpu->devices > 1) {
		const uint64_t other = app_map(app, 1, PIECE, 1, false);

		c = range_of(other, 1);
		tap_ok(c.device == 1 && !c.fd,
		       "a piece of the second device, not exportable");
		app_unmap(app, other, PIECE, 1);
	} else {
		tap_skip(1, "there is one device");
	}
}

static bool open_fd(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0;
}

static void dmabuf(void)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t addr = app_map(app, 0, PIECE, 3, true);
	struct gpu_dmabuf d = {.fd = -1};
	uint64_t plain;
	char here[64];

	tap_is_int(gpu_dmabuf_export(gpu, at(addr + PIECE - 100), 200, &d), 0,
		   "a DMA buffer over two pieces");
	tap_ok(open_fd(d.fd) && d.base % page == 0 &&
		       d.base + d.offset == addr + PIECE - 100 &&
		       d.offset + 200 <= d.len && d.len % page == 0,
	       "of whole pages, with the place of what was asked");
	close(d.fd);
	d = (struct gpu_dmabuf){.fd = -7};
	tap_is_int(gpu_dmabuf_export(gpu, here, sizeof(here), &d), -EINVAL,
		   "of the stack: refused");
	tap_ok(strstr(gpu_error(gpu), "no device memory") && d.fd == -7,
	       "in words, and nothing was written: %s", gpu_error(gpu));
	tap_is_int(gpu_dmabuf_export(gpu, at(addr), 0, &d), -EINVAL,
		   "of nothing: refused");
	tap_is_int(gpu_dmabuf_export(gpu, at(addr), UINT64_MAX - 5, &d), -EINVAL,
		   "of more than there are addresses: refused");
	tap_ok(gpu_dmabuf_export(gpu, at(addr), 4ull * PIECE, &d) != 0,
	       "of more than is mapped: refused");
	app_unmap(app, addr, PIECE, 3);
	tap_ok(gpu_dmabuf_export(gpu, at(addr), 4096, &d) != 0,
	       "of what is gone: refused");
	plain = app_alloc(app, 65536);
	tap_is_int(gpu_sync_memops(gpu, at(plain)), 0,
		   "finished copies can be asked for");
	app_free(app, plain);
}

/* What only the stand-in can be made to do. */
static void refusals(void)
{
	const uint64_t addr = app_map(app, 0, PIECE, 1, true);
	struct gpu_dmabuf d = {.fd = -1};

	tap_ok(gpu_dmabuf_export(gpu, at(addr), 4096, &d) == 0 && d.pcie,
	       "the mapping of the bus is taken where there is one");
	close(d.fd);
	app_knob(app, "pcie", 0);
	tap_ok(gpu_dmabuf_export(gpu, at(addr), 4096, &d) == 0 && !d.pcie,
	       "and the other where there is none");
	close(d.fd);
	app_knob(app, "pcie", 1);
	app_knob(app, "fail-export", 2);
	tap_is_int(gpu_dmabuf_export(gpu, at(addr), 4096, &d), -EIO,
		   "an export that fails");
	tap_ok(strstr(gpu_error(gpu), "999"), "fails in words: %s", gpu_error(gpu));
	tap_is_int(gpu_dmabuf_export(gpu, at(addr), 4096, &d), 0,
		   "and the next one works");
	close(d.fd);
	app_unmap(app, addr, PIECE, 1);
	tap_is_int(gpu_sync_memops(gpu, at(app_map(app, 0, PIECE, 1, true))), -ENOSYS,
		   "mapped pieces take no order of copies");
}

int main(void)
{
	app = app_open();
	if (!app)
		return 1;
	gpu = app_gpu(app);
	app_device(app, 0);
	allocated();
	pieces();
	if (gpu->device[0].dmabuf)
		dmabuf();
	else
		tap_skip(9, "no DMA buffers here");
	if (app_on_mock(app))
		refusals();
	gpu_close(gpu);
	return tap_done();
}
