/* SPDX-License-Identifier: BSD-2-Clause */
/* See gate_wire.h. */
#include "config.h"

#include "coll/grow/gate_wire.h"

#include <string.h>

#include "coll/ftar/meet_wire.h"
#include "util/be.h"

#define GATE_MAGIC   UINT32_C(0x57464731) /* "WFG1" */
#define GATE_VERSION 1

struct wire_hello {
	struct be32 magic;
	uint8_t version;
	uint8_t zero[3];
	struct be16 major, minor;
	uint8_t zero2[4];
	struct be64 sign;
	struct be64 drawn;
	uint8_t job[GATE_JOB_LEN];
};
_Static_assert(sizeof(struct wire_hello) == GATE_HELLO_LEN, "wire format");

struct wire_answer {
	struct be32 magic;
	struct be32 result;
	struct be32 rank, size;
	struct be64 word;
	uint8_t card[MEET_CARD_LEN];
	uint8_t zero[12];
	char text[GATE_TEXT];
};
_Static_assert(sizeof(struct wire_answer) == GATE_ANSWER_LEN, "wire format");

static const uint8_t zeros[16];

void gate_hello_put(void *buf, const struct gate_hello *hello)
{
	struct wire_hello w = {.magic = be32_of(GATE_MAGIC),
			       .version = GATE_VERSION,
			       .major = be16_of(hello->major),
			       .minor = be16_of(hello->minor),
			       .sign = be64_of(hello->sign),
			       .drawn = be64_of(hello->drawn)};

	memcpy(w.job, hello->job, sizeof(w.job));
	memcpy(buf, &w, sizeof(w));
}

bool gate_hello_get(const void *buf, struct gate_hello *hello)
{
	struct wire_hello w;

	memcpy(&w, buf, sizeof(w));
	*hello = (struct gate_hello){.major = be16_get(w.major),
				     .minor = be16_get(w.minor),
				     .sign = be64_get(w.sign),
				     .drawn = be64_get(w.drawn)};
	memcpy(hello->job, w.job, sizeof(hello->job));
	return be32_get(w.magic) == GATE_MAGIC && w.version == GATE_VERSION &&
	       memcmp(w.zero, zeros, sizeof(w.zero)) == 0 &&
	       memcmp(w.zero2, zeros, sizeof(w.zero2)) == 0 && hello->drawn;
}

void gate_answer_put(void *buf, const struct gate_answer *answer)
{
	struct wire_answer w = {.magic = be32_of(GATE_MAGIC),
				.result = be32_of((uint32_t)answer->result),
				.rank = be32_of((uint32_t)answer->rank),
				.size = be32_of((uint32_t)answer->size),
				.word = be64_of(answer->word)};

	if (answer->result == WEFT_SUCCESS)
		memcpy(w.card, answer->card, sizeof(w.card));
	memcpy(w.text, answer->text, sizeof(w.text));
	memcpy(buf, &w, sizeof(w));
}

bool gate_answer_get(const void *buf, struct gate_answer *answer)
{
	struct sockaddr_storage at;
	struct wire_answer w;
	socklen_t len;

	memcpy(&w, buf, sizeof(w));
	if (be32_get(w.magic) != GATE_MAGIC || be32_get(w.result) >= WEFT_RESULT_COUNT ||
	    be32_get(w.size) > FT_MEMBERS_MAX ||
	    memcmp(w.zero, zeros, sizeof(w.zero)) != 0)
		return false;
	*answer = (struct gate_answer){.result = (enum weft_result)be32_get(w.result),
				       .rank = (int32_t)be32_get(w.rank),
				       .size = (int32_t)be32_get(w.size),
				       .word = be64_get(w.word),
				       .card_len = MEET_CARD_LEN};
	memcpy(answer->card, w.card, sizeof(w.card));
	memcpy(answer->text, w.text, sizeof(answer->text));
	/* It becomes part of sentences. */
	answer->text[sizeof(answer->text) - 1] = '\0';
	for (char *c = answer->text; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	}
	return answer->result != WEFT_SUCCESS ||
	       (answer->rank >= 0 && answer->rank < answer->size && answer->word &&
		meet_card_get(answer->card, answer->card_len, &at, &len));
}
