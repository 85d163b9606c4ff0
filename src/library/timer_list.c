/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/timer_server.h: the timers that a server in another process holds. */
#include <muster/timer_server.h>

#include <stdlib.h>

#include "agent/watchdog/timer_server.h"
#include "host/watchdog/snapshot_socket.h"
#include "library/library_failure.h"
#include "library/library_memory.h"
#include "library/library_settings.h"
#include "wire/watchdog/timer_request_json.h"

struct listing {
    void (*visit)(void *context, const struct muster_timer_request *timer);
    void *context;
};

static void show(void *context, const struct watchdog_request *request) {
    const struct listing *listing = context;
    struct text json = {0};
    if (request->kind != WATCHDOG_ACQUIRE || request->pid > INT32_MAX) {
        return; /* not what a server says */
    }
    timer_request_json_write(request, &json);
    json.data[json.length - 1] = '\0'; /* in the place of the newline */
    const struct muster_timer_request timer = {
        .pid = (long)request->pid,
        .scope = request->scope,
        .expiration = (double)request->expiration.nanoseconds / NANOSECONDS_PER_SECOND,
        .signal = request->signal > 0 ? request->signal : 0,
        .json = json.data,
    };
    listing->visit(listing->context, &timer);
    text_clear(&json);
}

static void ignore(void *context, const char *reason) {
    (void)context;
    (void)reason;
}

static void take_line(void *context, struct slice line) {
    const struct timer_request_visitor visitor = {show, ignore, context};
    timer_request_json_each(line, &visitor);
}

enum muster_error muster_timer_server_list(const char *path,
    void (*visit)(void *context, const struct muster_timer_request *timer), void *context,
    struct muster_failure *out_failure) {
    struct listing listing = {visit, context};
    struct failure failure = {0};
    enum muster_error error =
        library_text_check("path", path, TIMER_SERVER_PATH_MAXIMUM, out_failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (visit == NULL) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "there is no function to call");
    }
    error = library_memory_check(out_failure);
    if (error != MUSTER_OK) {
        return error;
    }
    char *socket_path = text_format("%s" TIMER_SERVER_SOCKET_SUFFIX, path);
    enum failure_code code = snapshot_socket_read(socket_path, take_line, &listing, &failure);
    free(socket_path);
    return code == FAILURE_NONE ? MUSTER_OK : library_pass_on(out_failure, &failure);
}
