/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the machines of a link are at, in words: for who looks at one that stands still.
 * Each writes one line without its end, cut where it doesn't fit, and changes nothing.
 */
#ifndef WEFT_DQPLB_TEXT_H
#define WEFT_DQPLB_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct dqplb_rx;
struct dqplb_tx;

#define DQPLB_TEXT 256 /* enough for each */

void dqplb_tx_text(const struct dqplb_tx *tx, char text[DQPLB_TEXT]);
void dqplb_tx_lane_text(const struct dqplb_tx *tx, uint32_t lane, char text[DQPLB_TEXT]);
void dqplb_rx_text(const struct dqplb_rx *rx, char text[DQPLB_TEXT]);
void dqplb_rx_lane_text(const struct dqplb_rx *rx, uint32_t lane, char text[DQPLB_TEXT]);

/* Grows with everything of the transmitter that ends, or is under way for the first time:
 * what lanes lose and take again isn't counted. */
uint64_t dqplb_tx_progress(const struct dqplb_tx *tx);

#endif
