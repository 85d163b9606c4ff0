/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/awaited_place.h"

#include <fcntl.h>
#include <unistd.h>

void awaited_place_keep(struct awaited_place *place, const struct text_list *environment,
    const int streams[ATTEMPT_STREAM_COUNT]) {
    place->is_awaited = true;
    text_list_add_all(&place->environment, environment);
    for (int i = 0; i < ATTEMPT_STREAM_COUNT; i++) {
        place->streams[i] = streams[i] == -1 ? -1 : fcntl(streams[i], F_DUPFD_CLOEXEC, 0);
    }
}

void awaited_place_clear(struct awaited_place *place) {
    for (int i = 0; place->is_awaited && i < ATTEMPT_STREAM_COUNT; i++) {
        if (place->streams[i] != -1) {
            close(place->streams[i]);
        }
    }
    text_list_clear(&place->environment);
    *place = (struct awaited_place){0};
}
