/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/workers/restart_history.h"

#include <string.h>

static void forget_last(struct restart_history *history, int64_t number) {
    size_t gone = number < (int64_t)history->count ? (size_t)number : history->count;
    history->count -= gone;
    memmove(history->at, history->at + gone, history->count * sizeof *history->at);
}

static void add_new(struct restart_history *history, int64_t number, struct instant now) {
    size_t added = number < RESTART_HISTORY_MAXIMUM ? (size_t)number : RESTART_HISTORY_MAXIMUM;
    size_t room = RESTART_HISTORY_MAXIMUM - added;
    history->count = history->count < room ? history->count : room;
    memmove(history->at + added, history->at, history->count * sizeof *history->at);
    for (size_t i = 0; i < added; i++) {
        history->at[i] = now;
    }
    history->count += added;
}

static struct instant before(struct instant now, int32_t seconds) {
    return (struct instant){now.nanoseconds - seconds * (int64_t)NANOSECONDS_PER_SECOND};
}

void restart_history_note(struct restart_history *history, int64_t restarts,
    const struct restart_ages *ages, struct instant now) {
    size_t told = ages != NULL ? ages->count : 0;
    if (!history->has_begun) {
        history->has_begun = true;
        history->restarts = restarts - (int64_t)told;
    }
    if (restarts < history->restarts) {
        forget_last(history, history->restarts - restarts);
    } else {
        add_new(history, restarts - history->restarts, now);
    }
    history->restarts = restarts;
    for (size_t i = 0; i < history->count && i < told; i++) {
        struct instant at = before(now, ages->seconds[i]);
        history->at[i] = instant_earlier(at, history->at[i]);
    }
}

int restart_history_count(
    const struct restart_history *history, struct duration window, struct instant now) {
    size_t count = 0;
    /* A restart may have been before this machine's clock began. */
    while (count < history->count &&
           now.nanoseconds - history->at[count].nanoseconds < window.nanoseconds) {
        count++;
    }
    return (int)count;
}

void restart_history_tell(const struct restart_history *history, struct duration window,
    struct instant now, struct restart_ages *out_ages) {
    out_ages->count = (size_t)restart_history_count(history, window, now);
    for (size_t i = 0; i < out_ages->count; i++) {
        int64_t age = (now.nanoseconds - history->at[i].nanoseconds) / NANOSECONDS_PER_SECOND;
        out_ages->seconds[i] = (int32_t)(age < RESTART_AGE_MAXIMUM ? age : RESTART_AGE_MAXIMUM);
    }
}
