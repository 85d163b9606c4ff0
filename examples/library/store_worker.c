/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker in plain C that meets the others of its job in the store, with libmuster. Run it under
 * `muster run` or torchrun, which set the variables that it reads:
 *
 *     muster run --standalone --nproc-per-node 4 --no-python ./store_worker
 *
 * Each worker adds its share to a sum, the last one announces it, and all print it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <muster/store.h>

static const char *variable(const char *name) {
    const char *value = getenv(name);
    if (value == NULL) {
        fprintf(stderr, "store_worker: %s is not set; run it under `muster run`\n", name);
        exit(2);
    }
    return value;
}

/* The server is the one that the agent has for its workers. */
static struct muster_store *open_store(struct muster_failure *failure) {
    struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
    struct muster_store *base = NULL;
    struct muster_store *store = NULL;
    settings.host = variable("MASTER_ADDR");
    settings.port = atoi(variable("MASTER_PORT"));
    if (muster_store_new_tcp(&settings, &base, failure) != MUSTER_OK) {
        return NULL;
    }
    /* Workers of an earlier attempt have used the same keys. */
    char prefix[64];
    snprintf(prefix, sizeof prefix, "store_worker/%s", variable("TORCHELASTIC_RESTART_COUNT"));
    (void)muster_store_new_prefix(base, prefix, &store, failure);
    muster_store_free(base); /* the other one keeps the connection */
    return store;
}

static enum muster_error work(struct muster_store *store, struct muster_failure *failure) {
    int64_t share = atoi(variable("RANK")) + 1;
    int64_t world_size = atoi(variable("WORLD_SIZE"));
    int64_t sum;
    int64_t arrived;
    struct muster_bytes total = {0};
    enum muster_error error = muster_store_add(store, "sum", share, &sum, failure);
    if (error == MUSTER_OK) {
        error = muster_store_add(store, "arrived", 1, &arrived, failure);
    }
    if (error == MUSTER_OK && arrived == world_size) {
        error = muster_store_get(store, "sum", &total, failure);
        if (error == MUSTER_OK) {
            error = muster_store_set(store, "total", total.data, total.length, failure);
            muster_bytes_clear(&total);
        }
    }
    if (error == MUSTER_OK) {
        error = muster_store_get(store, "total", &total, failure); /* waits for the last worker */
    }
    if (error == MUSTER_OK) {
        printf("worker %s: the shares of %" PRId64 " workers make %s\n", variable("RANK"),
            world_size, total.data);
        muster_bytes_clear(&total);
    }
    return error;
}

int main(void) {
    struct muster_failure failure = {0};
    struct muster_store *store = open_store(&failure);
    if (store == NULL || work(store, &failure) != MUSTER_OK) {
        fprintf(stderr, "store_worker: %s\n", failure.message);
        muster_store_free(store);
        return EXIT_FAILURE;
    }
    muster_store_free(store);
    return EXIT_SUCCESS;
}
