/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations on one datatype; atomic_op.c includes this once for each of them (so it
 * has no guard), after defining
 *   ATOMIC_T        the type of an element
 *   ATOMIC_NAME(x)  x with the type's name
 *   ATOMIC_CLASS    one of the ATOMIC_CLASS_ numbers
 *   ATOMIC_WRAP     integers: an unsigned type, not narrower than int, to calculate in
 *   ATOMIC_WORD     an unsigned type of the same size that the processor changes at once;
 *                   not defined: the lock is taken
 * A step says whether *now is to be stored.
 */

typedef bool (*ATOMIC_NAME(step))(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp);

static inline ATOMIC_T ATOMIC_NAME(load)(const void *from, size_t i)
{
	ATOMIC_T value;

	memcpy(&value, (const char *)from + i * sizeof(value), sizeof(value));
	return value;
}

static inline void ATOMIC_NAME(store)(void *to, size_t i, ATOMIC_T value)
{
	memcpy((char *)to + i * sizeof(value), &value, sizeof(value));
}

#ifdef ATOMIC_WORD
/* Returns what was there when the step was made. */
static inline __attribute__((always_inline)) ATOMIC_T ATOMIC_NAME(change)(
	void *at, size_t i, ATOMIC_NAME(step) step, ATOMIC_T arg, ATOMIC_T cmp)
{
	typedef ATOMIC_WORD __attribute__((may_alias)) word;
	word *w = (word *)at + i, old = __atomic_load_n(w, __ATOMIC_ACQUIRE), to;
	ATOMIC_T was, now;

	do {
		memcpy(&was, &old, sizeof(was));
		now = was;
		if (!step(&now, arg, cmp)) {
			break;
		}
		memcpy(&to, &now, sizeof(to));
	} while (!__atomic_compare_exchange_n(w, &old, to, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_ACQUIRE));
	return was;
}
#else
static inline __attribute__((always_inline)) ATOMIC_T ATOMIC_NAME(change)(
	void *at, size_t i, ATOMIC_NAME(step) step, ATOMIC_T arg, ATOMIC_T cmp)
{
	ATOMIC_T was = ATOMIC_NAME(load)(at, i), now = was;

	if (step(&now, arg, cmp)) {
		ATOMIC_NAME(store)(at, i, now);
	}
	return was;
}
#endif

static inline __attribute__((always_inline)) void ATOMIC_NAME(each)(
	ATOMIC_NAME(step) step, void *at, const void *arg, const void *cmp, void *result,
	size_t count)
{
#ifndef ATOMIC_WORD
	pthread_mutex_t *lock = wide_take();

#endif
	for (size_t i = 0; i < count; i++) {
		ATOMIC_T a = arg ? ATOMIC_NAME(load)(arg, i) : 0;
		ATOMIC_T c = cmp ? ATOMIC_NAME(load)(cmp, i) : 0;
		ATOMIC_T was = ATOMIC_NAME(change)(at, i, step, a, c);

		if (result) {
			ATOMIC_NAME(store)(result, i, was);
		}
	}
#ifndef ATOMIC_WORD
	pthread_mutex_unlock(lock);
#endif
}

/* ---- any type */

#if ATOMIC_CLASS == ATOMIC_CLASS_INTEGER
static ATOMIC_T ATOMIC_NAME(sum_of)(ATOMIC_T a, ATOMIC_T b)
{
	return (ATOMIC_T)((ATOMIC_WRAP)a + (ATOMIC_WRAP)b);
}
#else
static ATOMIC_T ATOMIC_NAME(sum_of)(ATOMIC_T a, ATOMIC_T b)
{
	return a + b;
}
#endif

static bool ATOMIC_NAME(sum_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	(void)cmp;
	*now = ATOMIC_NAME(sum_of)(*now, arg);
	return true;
}

static void ATOMIC_NAME(sum)(void *at, const void *arg, const void *cmp, void *result,
			     size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(sum_step), at, arg, cmp, result, count);
}

#if ATOMIC_CLASS == ATOMIC_CLASS_INTEGER
static ATOMIC_T ATOMIC_NAME(prod_of)(ATOMIC_T a, ATOMIC_T b)
{
	return (ATOMIC_T)((ATOMIC_WRAP)a * (ATOMIC_WRAP)b);
}
#else
static ATOMIC_T ATOMIC_NAME(prod_of)(ATOMIC_T a, ATOMIC_T b)
{
	return a * b;
}
#endif

static bool ATOMIC_NAME(prod_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	(void)cmp;
	*now = ATOMIC_NAME(prod_of)(*now, arg);
	return true;
}

static void ATOMIC_NAME(prod)(void *at, const void *arg, const void *cmp, void *result,
			      size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(prod_step), at, arg, cmp, result, count);
}

static bool ATOMIC_NAME(lor_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	(void)cmp;
	*now = *now || arg;
	return true;
}

static void ATOMIC_NAME(lor)(void *at, const void *arg, const void *cmp, void *result,
			     size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(lor_step), at, arg, cmp, result, count);
}

static bool ATOMIC_NAME(land_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	(void)cmp;
	*now = *now && arg;
	return true;
}

static void ATOMIC_NAME(land)(void *at, const void *arg, const void *cmp, void *result,
			      size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(land_step), at, arg, cmp, result, count);
}

static bool ATOMIC_NAME(lxor_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	(void)cmp;
	*now = !*now != !arg;
	return true;
}

static void ATOMIC_NAME(lxor)(void *at, const void *arg, const void *cmp, void *result,
			      size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(lxor_step), at, arg, cmp, result, count);
}

static bool ATOMIC_NAME(read_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	(void)arg;
	(void)cmp;
	(void)now;
	return false;
}

static void ATOMIC_NAME(read)(void *at, const void *arg, const void *cmp, void *result,
			      size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(read_step), at, arg, cmp, result, count);
}

static bool ATOMIC_NAME(write_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	(void)cmp;
	*now = arg;
	return true;
}

static void ATOMIC_NAME(write)(void *at, const void *arg, const void *cmp, void *result,
			       size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(write_step), at, arg, cmp, result, count);
}

static bool ATOMIC_NAME(cswap_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	bool swap = cmp == *now;

	if (swap) {
		*now = arg;
	}
	return swap;
}

static void ATOMIC_NAME(cswap)(void *at, const void *arg, const void *cmp, void *result,
			       size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(cswap_step), at, arg, cmp, result, count);
}

static bool ATOMIC_NAME(cswap_ne_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	bool swap = cmp != *now;

	if (swap) {
		*now = arg;
	}
	return swap;
}

static void ATOMIC_NAME(cswap_ne)(void *at, const void *arg, const void *cmp,
				  void *result, size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(cswap_ne_step), at, arg, cmp, result, count);
}

/* ---- types with an order */

#if ATOMIC_CLASS != ATOMIC_CLASS_COMPLEX
static bool ATOMIC_NAME(min_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	(void)cmp;
	bool change = arg < *now;

	if (change) {
		*now = arg;
	}
	return change;
}

static void ATOMIC_NAME(min)(void *at, const void *arg, const void *cmp, void *result,
			     size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(min_step), at, arg, cmp, result, count);
}

static bool ATOMIC_NAME(max_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	(void)cmp;
	bool change = arg > *now;

	if (change) {
		*now = arg;
	}
	return change;
}

static void ATOMIC_NAME(max)(void *at, const void *arg, const void *cmp, void *result,
			     size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(max_step), at, arg, cmp, result, count);
}

static bool ATOMIC_NAME(cswap_le_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	bool swap = cmp <= *now;

	if (swap) {
		*now = arg;
	}
	return swap;
}

static void ATOMIC_NAME(cswap_le)(void *at, const void *arg, const void *cmp,
				  void *result, size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(cswap_le_step), at, arg, cmp, result, count);
}

static bool ATOMIC_NAME(cswap_lt_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	bool swap = cmp < *now;

	if (swap) {
		*now = arg;
	}
	return swap;
}

static void ATOMIC_NAME(cswap_lt)(void *at, const void *arg, const void *cmp,
				  void *result, size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(cswap_lt_step), at, arg, cmp, result, count);
}

static bool ATOMIC_NAME(cswap_ge_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	bool swap = cmp >= *now;

	if (swap) {
		*now = arg;
	}
	return swap;
}

static void ATOMIC_NAME(cswap_ge)(void *at, const void *arg, const void *cmp,
				  void *result, size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(cswap_ge_step), at, arg, cmp, result, count);
}

static bool ATOMIC_NAME(cswap_gt_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	bool swap = cmp > *now;

	if (swap) {
		*now = arg;
	}
	return swap;
}

static void ATOMIC_NAME(cswap_gt)(void *at, const void *arg, const void *cmp,
				  void *result, size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(cswap_gt_step), at, arg, cmp, result, count);
}

#endif

/* ---- types with bits */

#if ATOMIC_CLASS == ATOMIC_CLASS_INTEGER
static bool ATOMIC_NAME(bor_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	(void)cmp;
	*now = (ATOMIC_T)(*now | arg);
	return true;
}

static void ATOMIC_NAME(bor)(void *at, const void *arg, const void *cmp, void *result,
			     size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(bor_step), at, arg, cmp, result, count);
}

static bool ATOMIC_NAME(band_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	(void)cmp;
	*now = (ATOMIC_T)(*now & arg);
	return true;
}

static void ATOMIC_NAME(band)(void *at, const void *arg, const void *cmp, void *result,
			      size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(band_step), at, arg, cmp, result, count);
}

static bool ATOMIC_NAME(bxor_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	(void)cmp;
	*now = (ATOMIC_T)(*now ^ arg);
	return true;
}

static void ATOMIC_NAME(bxor)(void *at, const void *arg, const void *cmp, void *result,
			      size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(bxor_step), at, arg, cmp, result, count);
}

static bool ATOMIC_NAME(mswap_step)(ATOMIC_T *now, ATOMIC_T arg, ATOMIC_T cmp)
{
	*now = (ATOMIC_T)((arg & cmp) | (*now & ~cmp));
	return true;
}

static void ATOMIC_NAME(mswap)(void *at, const void *arg, const void *cmp, void *result,
			       size_t count)
{
	ATOMIC_NAME(each)(ATOMIC_NAME(mswap_step), at, arg, cmp, result, count);
}

#endif

#undef ATOMIC_T
#undef ATOMIC_NAME
#undef ATOMIC_CLASS
#undef ATOMIC_WRAP
#undef ATOMIC_WORD
