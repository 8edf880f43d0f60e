/* SPDX-License-Identifier: BSD-2-Clause */
/* What is the same for every device: names of things, rates, and what there isn't. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "fabtests/emuverbs/emu.h"

#define NAME(table, i)                                                                 \
	((unsigned)(i) < sizeof(table) / sizeof((table)[0]) && (table)[i] ? (table)[i] \
									  : "unknown")

EMU_API const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	static const char *const names[] = {
		[IBV_WC_SUCCESS] = "success",
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
		[IBV_WC_FATAL_ERR] = "fatal error",
		[IBV_WC_GENERAL_ERR] = "general error",
	};

	return NAME(names, status);
}

EMU_API const char *ibv_node_type_str(enum ibv_node_type node_type)
{
	return node_type == IBV_NODE_CA ? "InfiniBand channel adapter" : "unknown";
}

EMU_API const char *ibv_port_state_str(enum ibv_port_state state)
{
	static const char *const names[] = {"PORT_NOP",	   "PORT_DOWN",
					    "PORT_INIT",   "PORT_ARMED",
					    "PORT_ACTIVE", "PORT_ACTIVE_DEFER"};

	return NAME(names, state);
}

EMU_API const char *ibv_event_type_str(enum ibv_event_type event)
{
	static const char *const names[] = {
		[IBV_EVENT_CQ_ERR] = "CQ error",
		[IBV_EVENT_QP_FATAL] = "local work queue catastrophic error",
		[IBV_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
		[IBV_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
		[IBV_EVENT_COMM_EST] = "communication established",
		[IBV_EVENT_SQ_DRAINED] = "send queue drained",
		[IBV_EVENT_DEVICE_FATAL] = "local catastrophic error",
		[IBV_EVENT_PORT_ACTIVE] = "port active",
		[IBV_EVENT_PORT_ERR] = "port error",
		[IBV_EVENT_SRQ_ERR] = "SRQ catastrophic error",
		[IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
		[IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
		[IBV_EVENT_GID_CHANGE] = "GID table change",
	};

	return NAME(names, event);
}

static const struct {
	enum ibv_rate rate;
	int mbps;
} rates[] = {
	{IBV_RATE_2_5_GBPS, 2500},   {IBV_RATE_5_GBPS, 5000},
	{IBV_RATE_10_GBPS, 10000},   {IBV_RATE_20_GBPS, 20000},
	{IBV_RATE_30_GBPS, 30000},   {IBV_RATE_40_GBPS, 40000},
	{IBV_RATE_100_GBPS, 103125}, {IBV_RATE_200_GBPS, 206250},
	{IBV_RATE_400_GBPS, 412500},
};
#define RATES (sizeof(rates) / sizeof(rates[0]))

EMU_API int ibv_rate_to_mbps(enum ibv_rate rate)
{
	for (size_t i = 0; i < RATES; i++)
		if (rates[i].rate == rate)
			return rates[i].mbps;
	return -1;
}

EMU_API enum ibv_rate mbps_to_ibv_rate(int mbps)
{
	for (size_t i = 0; i < RATES; i++)
		if (rates[i].mbps == mbps)
			return rates[i].rate;
	return IBV_RATE_MAX;
}

EMU_API int ibv_rate_to_mult(enum ibv_rate rate)
{
	int mbps = ibv_rate_to_mbps(rate);

	return mbps < 0 ? -1 : mbps / 2500;
}

EMU_API enum ibv_rate mult_to_ibv_rate(int mult)
{
	return mbps_to_ibv_rate(mult * 2500);
}

/* Memory is moved by the processor: nothing has to be kept from being copied. */
EMU_API int ibv_fork_init(void)
{
	return 0;
}

EMU_API enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

EMU_API int ibv_dontfork_range(void *base, size_t size)
{
	(void)base, (void)size;
	return 0;
}

EMU_API int ibv_dofork_range(void *base, size_t size)
{
	(void)base, (void)size;
	return 0;
}

EMU_API const char *ibv_get_sysfs_path(void)
{
	return NULL;
}

EMU_API int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	(void)dir, (void)file, (void)buf, (void)size;
	return -1;
}

/* What there isn't: as pointers, as numbers, and for drivers, which find no device. */
EMU_API void *emu_no_object(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

EMU_API int emu_no_call(void)
{
	return EOPNOTSUPP;
}

EMU_API void emu_nothing(void)
{
}

/* Of drivers, which look at it and leave. */
EMU_API extern bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy;
