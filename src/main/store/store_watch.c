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
    const char *key;
    bool is_raw;
    struct bytes value; /* the value that was shown last */
    bool has_value;
    bool has_changed;
};

static void compare_value(void *context, const struct muster_store_result *result) {
    struct watch *watch = context;
    struct slice value = {result->value.data, result->value.length};
    watch->has_changed = !watch->has_value || !slice_equals(bytes_slice(&watch->value), value);
    if (watch->has_changed) {
        watch->has_value = true;
        watch->value.length = 0;
        (void)!bytes_append(&watch->value, value.data, value.length);
        store_print_line(result->value);
        fflush(stdout);
    }
}

static struct store_session_question about_key(
    const struct watch *watch, enum muster_store_operation operation) {
    return (struct store_session_question){.request = {.operation = operation,
                                               .key = watch->key,
                                               .keys = &watch->key,
                                               .count = 1,
                                               .is_raw = watch->is_raw}};
}

/* Waits for the key if it does not exist. Then shows its value if it has changed. */
static bool look(struct watch *watch) {
    const struct store_session_question check = about_key(watch, MUSTER_STORE_CHECK);
    struct store_session_question wait = about_key(watch, MUSTER_STORE_WAIT);
    struct store_session_question get = about_key(watch, MUSTER_STORE_GET);
    int presence = store_session_ask_whether(watch->session, &check);
    if (presence == 0) {
        watch->has_value = false;
        wait.has_no_time_limit = true;
        presence = store_session_ask(watch->session, &wait) ? 1 : -1;
    }
    get.take = compare_value;
    get.context = watch;
    return presence == 1 && store_session_ask(watch->session, &get);
}

int store_run_watch(struct store_session *session, const struct option_result *options) {
    struct watch watch = {
        .session = session,
        .key = option_result_value(options, "key")->text,
        .is_raw = option_result_value(options, "raw")->flag,
    };
    const struct option_value *changes = option_result_value(options, "changes");
    double interval = option_result_value(options, "interval")->number;
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
