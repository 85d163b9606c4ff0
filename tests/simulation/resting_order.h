/* SPDX-License-Identifier: BSD-3-Clause */
/* In what order a simulated lane is answered while a QUEUE_POP rests at the store, which gives way
 * to each other request (core/store/store_table.h): first what has given way, then the call at the
 * store, then what rests. host/store/store_link does the same, with signs of life between. */
#ifndef MUSTER_TESTS_SIMULATION_RESTING_ORDER_H
#define MUSTER_TESTS_SIMULATION_RESTING_ORDER_H

#include <stdbool.h>

#include "core/store/store_request.h"

struct resting_order {
    bool is_wanted;  /* a call wants an item */
    bool is_resting; /* its QUEUE_POP is at the store, behind all else */
    int given_way;   /* so many answers to it come before that of the call at the store … */
    int unwanted;    /* … of which the first ones are of another key */
    int behind;      /* so many of another key come after that of the call at the store */
};

/* Something else is sent. */
static inline void resting_order_give_way(struct resting_order *order) {
    order->given_way += order->is_resting ? 1 : 0;
    order->is_resting = false;
}

/* From now on a call wants an item of another key. What rests was sent behind the call that is at
 * the store, and is answered after it. (host/store/store_client waits for that answer first.) */
static inline void resting_order_replace(struct resting_order *order, bool is_busy) {
    order->behind += order->is_resting && is_busy ? 1 : 0;
    order->is_resting = order->is_resting && !is_busy;
    resting_order_give_way(order);
    order->unwanted = order->given_way;
}

static inline bool resting_order_is_next(const struct resting_order *order, bool is_busy) {
    return order->given_way > 0 || (order->is_resting && !is_busy);
}

/* The call at the store was answered. */
static inline void resting_order_note_answer(struct resting_order *order) {
    order->given_way += order->behind;
    order->unwanted += order->behind;
    order->behind = 0;
}

/* Whether the QUEUE_POP is to be sent now: behind a call, but never behind a wait or other calls.
 */
static inline bool resting_order_is_due(const struct resting_order *order, bool is_busy,
    enum store_operation first, size_t call_count) {
    return order->is_wanted && !order->is_resting && call_count == (is_busy ? 1 : 0) &&
           !(is_busy && first == STORE_WAIT);
}

/* Takes the answer that is next. Whether the call that wants an item is done. */
static inline bool resting_order_take(
    struct resting_order *order, const struct store_reply *reply) {
    bool has_given_way = order->given_way > 0;
    bool is_done =
        order->is_wanted && order->unwanted == 0 && !(has_given_way && reply->pop.length == 0);
    order->given_way -= has_given_way ? 1 : 0;
    order->unwanted -= order->unwanted > 0 ? 1 : 0;
    order->is_resting = order->is_resting && has_given_way;
    order->is_wanted = order->is_wanted && !is_done;
    return is_done;
}

#endif
