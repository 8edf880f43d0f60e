/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrusive doubly linked list. A node that is on no list points to itself, so
 * that removal is safe twice and list_empty(node) says whether it is linked.
 */
#ifndef WEFT_UTIL_LIST_H
#define WEFT_UTIL_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next;
	struct list *prev;
};

#ifndef container_of
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#endif

static inline void list_init(struct list *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_insert_after(struct list *pos, struct list *node)
{
	node->next = pos->next;
	node->prev = pos;
	pos->next->prev = node;
	pos->next = node;
}

static inline void list_push_front(struct list *head, struct list *node)
{
	list_insert_after(head, node);
}

static inline void list_push_back(struct list *head, struct list *node)
{
	list_insert_after(head->prev, node);
}

static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* For a node that is not looked at until it is put on a list again. */
static inline void list_unlink(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
}

/* First node, removed; NULL when the list is empty. */
static inline struct list *list_pop_front(struct list *head)
{
	struct list *node = head->next;

	if (node == head)
		return NULL;
	list_remove(node);
	return node;
}

#define list_foreach(pos, head) \
	for (struct list *pos = (head)->next; pos != (head); pos = pos->next)

/* The body may remove pos. */
#define list_foreach_safe(pos, tmp, head)                                      \
	for (struct list *pos = (head)->next, *tmp = pos->next; pos != (head); \
	     pos = tmp, tmp = tmp->next)

#endif
