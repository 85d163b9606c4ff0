/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/watchdog/joint_ending.h"

struct duration joint_ending_begin_look(
    struct joint_ending *ending, struct instant now, struct duration bound) {
    if (!ending->is_begun) {
        struct duration window = duration_from_milliseconds(JOINT_ENDING_WINDOW_MILLISECONDS);
        ending->is_begun = true;
        ending->end = instant_after(now, bound);
        ending->window_end = instant_earlier(instant_after(now, window), ending->end);
    }
    ending->look_count++;
    return instant_until(now, ending->end);
}

void joint_ending_end_look(struct joint_ending *ending) {
    ending->look_count--;
}

struct instant joint_ending_due(const struct joint_ending *ending, const struct instant *next) {
    if (!ending->is_begun || ending->look_count > 0) {
        return (struct instant){INT64_MAX};
    }
    bool is_next_in_window = next != NULL && instant_is_before(*next, ending->window_end);
    return is_next_in_window ? ending->window_end : (struct instant){0};
}
