/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits until a key is in a store, with libmuster, and says by its exit status what came instead:
 *
 *     ./wait_for_key HOST PORT KEY SECONDS
 *
 * 0: the key is there. 2: the words of the command line make no sense. 75: it may be there later.
 * 1: anything else. */
#include <stdio.h>
#include <stdlib.h>

#include <muster/error.h>
#include <muster/store.h>

enum { EXIT_USAGE = 2, EXIT_LATER = 75 };

static int status_of(enum muster_error error) {
    if (error == MUSTER_OK) {
        return EXIT_SUCCESS;
    }
    if (error == MUSTER_ERROR_INVALID || error == MUSTER_ERROR_LIMIT) {
        return EXIT_USAGE;
    }
    return error == MUSTER_ERROR_TIMEOUT || error == MUSTER_ERROR_DISCONNECTED ? EXIT_LATER
                                                                               : EXIT_FAILURE;
}

static enum muster_error wait_for_key(const struct muster_tcp_store_settings *settings,
    const char *key, struct muster_failure *failure) {
    struct muster_store *store = NULL;
    enum muster_error error = muster_store_new_tcp(settings, &store, failure);
    if (error == MUSTER_OK) {
        error = muster_store_wait(store, &key, 1, 0, failure);
    }
    muster_store_free(store);
    return error;
}

int main(int argument_count, char **arguments) {
    struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
    struct muster_failure failure;
    if (argument_count != 5) {
        fprintf(
            stderr, "usage: wait_for_key HOST PORT KEY SECONDS (libmuster %s)\n", muster_version());
        return EXIT_USAGE;
    }
    settings.host = arguments[1];
    settings.port = atoi(arguments[2]);
    settings.timeout = atof(arguments[4]);
    enum muster_error error = wait_for_key(&settings, arguments[3], &failure);
    if (error != MUSTER_OK) {
        fprintf(stderr, "wait_for_key: %s: %s\n", muster_error_text(error), failure.message);
    }
    return status_of(error);
}
