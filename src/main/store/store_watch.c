/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster store watch`. A TCPStore does not report that a value has changed: its WAIT ends when a
 * key exists, and never reports later changes. So this command waits for the key to appear, and
 * from then on reads it again and again. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "main/store/store_operations.h"
#include "main/store/store_print.h"
#include "main/store/store_session.h"

struct watch {
    struct store_session *session;
    struct slice key;
    bool is_raw;
    struct bytes value; /* the value that was shown last */
    bool has_value;
    bool has_changed;
};

static void compare_value(void *context, const struct store_reply *reply) {
    struct watch *watch = context;
    watch->has_changed =
        !watch->has_value || !slice_equals(bytes_slice(&watch->value), reply->blob);
    if (watch->has_changed) {
        watch->has_value = true;
        watch->value.length = 0;
        (void)!bytes_append(&watch->value, reply->blob.data, reply->blob.length);
        store_print_line(reply->blob);
        fflush(stdout);
    }
}

static int ask_about_key(struct watch *watch, enum store_operation operation) {
    return store_session_ask_byte(
        watch->session, &(struct store_session_question){
                            .request = {.operation = operation, .keys = &watch->key, .count = 1},
                            .is_raw = watch->is_raw,
                            .has_no_time_limit = operation == STORE_WAIT});
}

/* Waits for the key if it does not exist. Then shows its value if it has changed. */
static bool look(struct watch *watch) {
    int presence = ask_about_key(watch, STORE_CHECK);
    if (presence == STORE_NOT_READY) {
        watch->has_value = false;
        presence = ask_about_key(watch, STORE_WAIT);
    }
    return presence == STORE_READY &&
           store_session_ask(
               watch->session, &(struct store_session_question){
                                   .request = {.operation = STORE_GET, .key = watch->key},
                                   .is_raw = watch->is_raw,
                                   .take = compare_value,
                                   .context = watch});
}

int store_run_watch(struct store_session *session, const struct option_result *options) {
    struct watch watch = {
        .session = session,
        .key = slice_from_string(option_result_value(options, "key")->text),
        .is_raw = option_result_value(options, "raw")->flag,
    };
    const struct option_value *changes = option_result_value(options, "changes");
    struct duration interval =
        duration_from_seconds(option_result_value(options, "interval")->number);
    int64_t shown = 0;
    bool is_done = false;
    while (!is_done && look(&watch)) {
        shown += watch.has_changed;
        is_done = changes->is_set && shown >= changes->integer;
        if (!is_done) {
            store_session_pause(session, interval);
        }
    }
    bytes_clear(&watch.value);
    return is_done ? EXIT_SUCCESS : EXIT_FAILURE;
}
