/* SPDX-License-Identifier: BSD-2-Clause */
/* Loading libibverbs. */
#include "config.h"

#include "prov/wire/verbs/verbs_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "prov/mem/params.h"

#define LIBRARY_NAME "libibverbs.so.1"

static struct verbs_lib table;
static char absent[300] = "";
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define SYMBOL(field_, name_, must_)                                           \
	{                                                                      \
		.name = (name_), .offset = offsetof(struct verbs_lib, field_), \
		.must = (must_),                                               \
	}

static const struct {
	const char *name;
	size_t offset;
	bool must;
} symbols[] = {
	SYMBOL(get_device_list, "ibv_get_device_list", true),
	SYMBOL(free_device_list, "ibv_free_device_list", true),
	SYMBOL(get_device_name, "ibv_get_device_name", true),
	SYMBOL(open_device, "ibv_open_device", true),
	SYMBOL(close_device, "ibv_close_device", true),
	SYMBOL(query_device, "ibv_query_device", true),
	SYMBOL(query_port, "ibv_query_port", true),
	SYMBOL(query_gid, "ibv_query_gid", true),
	SYMBOL(query_pkey, "ibv_query_pkey", true),
	SYMBOL(get_async_event, "ibv_get_async_event", true),
	SYMBOL(ack_async_event, "ibv_ack_async_event", true),
	SYMBOL(alloc_pd, "ibv_alloc_pd", true),
	SYMBOL(dealloc_pd, "ibv_dealloc_pd", true),
	SYMBOL(reg_mr, "ibv_reg_mr", true),
	SYMBOL(dereg_mr, "ibv_dereg_mr", true),
	SYMBOL(create_comp_channel, "ibv_create_comp_channel", true),
	SYMBOL(destroy_comp_channel, "ibv_destroy_comp_channel", true),
	SYMBOL(create_cq, "ibv_create_cq", true),
	SYMBOL(destroy_cq, "ibv_destroy_cq", true),
	SYMBOL(get_cq_event, "ibv_get_cq_event", true),
	SYMBOL(ack_cq_events, "ibv_ack_cq_events", true),
	SYMBOL(create_srq, "ibv_create_srq", true),
	SYMBOL(modify_srq, "ibv_modify_srq", true),
	SYMBOL(destroy_srq, "ibv_destroy_srq", true),
	SYMBOL(create_qp, "ibv_create_qp", true),
	SYMBOL(modify_qp, "ibv_modify_qp", true),
	SYMBOL(query_qp, "ibv_query_qp", true),
	SYMBOL(destroy_qp, "ibv_destroy_qp", true),
	SYMBOL(wc_status_str, "ibv_wc_status_str", true),
	SYMBOL(event_type_str, "ibv_event_type_str", true),
	SYMBOL(port_state_str, "ibv_port_state_str", true),
	SYMBOL(fork_init, "ibv_fork_init", false),
	SYMBOL(is_fork_initialized, "ibv_is_fork_initialized", false),
	SYMBOL(reg_mr_iova2, "ibv_reg_mr_iova2", false),
	SYMBOL(reg_dmabuf_mr, "ibv_reg_dmabuf_mr", false),
	SYMBOL(query_gid_ex, "_ibv_query_gid_ex", false),
	SYMBOL(query_qp_data_in_order, "ibv_query_qp_data_in_order", false),
};

static void table_fill(void *library)
{
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		/* Without a version the newest is found. */
		void *at = dlsym(library, symbols[i].name);

		memcpy((char *)&table + symbols[i].offset, &at, sizeof(at));
		if (!at && symbols[i].must) {
			snprintf(absent, sizeof(absent),
				 LIBRARY_NAME " has no %s: it is too old, or another "
					      "library of that name",
				 symbols[i].name);
			return;
		}
		if (!at)
			FI_INFO(&weft_provider, FI_LOG_CORE,
				LIBRARY_NAME " has no %s: done without\n",
				symbols[i].name);
	}
}

/* Never unloaded: drivers that it loads have threads and handlers of their own. */
static void load(void)
{
	void *library = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		snprintf(absent, sizeof(absent),
			 LIBRARY_NAME " can't be loaded (%s): install it (Debian: "
				      "libibverbs1 and ibverbs-providers) where peers "
				      "on other hosts are wanted",
			 dlerror());
	else
		table_fill(library);
}

const struct verbs_lib *verbs_lib(void)
{
	pthread_once(&once, load);
	return absent[0] ? NULL : &table;
}

const char *verbs_lib_absent(void)
{
	return verbs_lib() ? NULL : absent;
}

int verbs_query_port(const struct verbs_lib *lib, struct ibv_context *context,
		     uint8_t port, struct ibv_port_attr *attr)
{
	struct verbs_context *v = verbs_get_ctx_op(context, query_port);

	memset(attr, 0, sizeof(*attr));
	if (v)
		return v->query_port(context, port, attr, sizeof(*attr));
	return lib->query_port(context, port, (struct _compat_ibv_port_attr *)attr);
}
