/* SPDX-License-Identifier: BSD-2-Clause */
/* See lines.h. Turns wrap: they are compared by their difference. */
#include "config.h"

#include "coll/exec/lines.h"

static uint32_t slot_of(uint32_t turn)
{
	return turn % LINES_SLOTS;
}

void *lines_place(const struct lines *l, size_t bytes)
{
	const uint32_t slot = slot_of(l->turn + 1);

	return bytes <= LINES_SHORT ? l->own->head[slot].data : l->own->data[slot];
}

int32_t lines_behind(struct lines *l)
{
	const uint32_t need = l->turn + 2 - LINES_SLOTS;

	if ((int32_t)(l->seen - need) >= 0)
		return -1;
	for (int32_t i = 0; i < l->size; i++) {
		const uint64_t word = atomic_load_explicit(
			&l->of[i]->head[slot_of(need)].word, memory_order_acquire);

		if (i != l->self && (int32_t)((uint32_t)word - need) < 0)
			return i;
	}
	l->seen = need;
	return -1;
}

void lines_publish(struct lines *l, uint32_t call, uint64_t sig)
{
	struct lines_head *head = &l->own->head[slot_of(++l->turn)];

	head->sig = sig;
	atomic_store_explicit(&head->word, (uint64_t)call << 32 | l->turn,
			      memory_order_release);
}

void lines_withdraw(struct lines *l, uint32_t turns)
{
	for (uint32_t i = 0; i < turns && i < LINES_SLOTS; i++)
		atomic_store_explicit(&l->own->head[slot_of(l->turn - i)].word,
				      l->turn - i - LINES_SLOTS, memory_order_release);
	/* Whoever reads our memory meanwhile looks at these words when it has read: what
	 * we change after this it does not take for good. */
	atomic_thread_fence(memory_order_seq_cst);
}

enum lines_look lines_look(const struct lines *l, int32_t rank, uint32_t call,
			   uint64_t sig, size_t bytes, const void **data,
			   struct lines_call *other)
{
	const uint32_t slot = slot_of(l->turn);
	const struct lines_head *head = &l->of[rank]->head[slot];
	const uint64_t word = atomic_load_explicit(&head->word, memory_order_acquire);
	const int32_t ahead = (int32_t)((uint32_t)word - l->turn);

	if (ahead < 0)
		return LINES_NOT_YET;
	if (ahead > 0)
		return LINES_WRONG;
	*other = (struct lines_call){.call = (uint32_t)(word >> 32), .sig = head->sig};
	*data = bytes <= LINES_SHORT ? head->data : l->of[rank]->data[slot];
	return other->sig == sig && other->call == call ? LINES_THERE : LINES_OTHER;
}
