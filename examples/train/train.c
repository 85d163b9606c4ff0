/* SPDX-License-Identifier: BSD-3-Clause */
/* An elastic data-parallel training worker without PyTorch: every worker computes the gradient over
 * its share of a data file, all exchange gradients through the job's store, and all take the same
 * step. Worker 0 saves a checkpoint now and then. A restarted group continues from it.
 *
 *     muster run --standalone --nproc-per-node 4 --max-restarts 1 --no-python \
 *         train DATA CHECKPOINT STEPS
 *
 * Gradients are summed in rank order, so a run that was interrupted ends with the same bits as one
 * that was not. With `--standby on` a second process of each worker has read the data already, and
 * takes over at the gate when a worker has died. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint.h"
#include "model.h"
#include "muster/standby.h"
#include "store_connection.h"

#define LEARNING_RATE 0.05
#define STEPS_BETWEEN_CHECKPOINTS 50
#define STEPS_BETWEEN_REPORTS 200
#define REDUCED_VALUES (MODEL_PARAMETERS + 1) /* the gradient, then the squared error */

/* This worker's place in the group, from the environment the launcher sets. */
struct worker {
    size_t rank;
    size_t world_size;
    const char *attempt;
    struct store_connection store;
};

static const char *required_variable(const char *name) {
    const char *value = getenv(name);
    if (value == NULL) {
        fprintf(stderr, "train: %s is not set; start me with `muster run`\n", name);
        exit(2);
    }
    return value;
}

static void worker_init(struct worker *worker) {
    worker->rank = (size_t)strtoul(required_variable("RANK"), NULL, 10);
    worker->world_size = (size_t)strtoul(required_variable("WORLD_SIZE"), NULL, 10);
    const char *attempt = getenv("TORCHELASTIC_RESTART_COUNT");
    worker->attempt = attempt == NULL ? "0" : attempt;
    store_connect(
        &worker->store, required_variable("MASTER_ADDR"), required_variable("MASTER_PORT"));
}

/* Keys carry the attempt, so that no worker takes what a dead group left behind for its own. */
static void name_key(
    char *out_key, size_t size, const struct worker *worker, size_t step, size_t rank) {
    snprintf(out_key, size, "gradient/%s/%zu/%zu", worker->attempt, step, rank);
}

/* Every worker continues from what worker 0 found, so all start alike. */
static void agree_on_start(
    struct worker *worker, struct checkpoint *out_checkpoint, const char *path) {
    char key[64];
    snprintf(key, sizeof(key), "start/%s", worker->attempt);
    if (worker->rank == 0) {
        checkpoint_load_or_init(out_checkpoint, path);
        store_set(&worker->store, key, out_checkpoint, sizeof(*out_checkpoint));
    } else {
        store_get(&worker->store, key, out_checkpoint, sizeof(*out_checkpoint));
    }
}

/* Replaces the values by their sum over all workers, added in rank order. */
static void sum_over_workers(struct worker *worker, size_t step, double values[REDUCED_VALUES]) {
    char key[128];
    double own[REDUCED_VALUES];
    memcpy(own, values, sizeof(own));
    name_key(key, sizeof(key), worker, step, worker->rank);
    store_set(&worker->store, key, own, sizeof(own));
    memset(values, 0, sizeof(own));
    for (size_t rank = 0; rank < worker->world_size; rank++) {
        double theirs[REDUCED_VALUES];
        const double *addend = own;
        if (rank != worker->rank) {
            name_key(key, sizeof(key), worker, step, rank);
            store_get(&worker->store, key, theirs, sizeof(theirs));
            addend = theirs;
        }
        for (size_t i = 0; i < REDUCED_VALUES; i++) {
            values[i] += addend[i];
        }
    }
    /* Whoever published this step has read the one before it. */
    if (step > 0) {
        name_key(key, sizeof(key), worker, step - 1, worker->rank);
        store_delete(&worker->store, key);
    }
}

/* One step of gradient descent over all workers' shares; returns the mean squared error. */
static double train_step(
    struct worker *worker, const struct data_set *data, struct checkpoint *state) {
    double values[REDUCED_VALUES] = {0};
    values[MODEL_PARAMETERS] =
        model_add_gradient(state->parameters, data, worker->rank, worker->world_size, values);
    sum_over_workers(worker, (size_t)state->step, values);
    for (size_t i = 0; i < MODEL_PARAMETERS; i++) {
        state->parameters[i] -= LEARNING_RATE * values[i] / (double)data->count;
    }
    state->step++;
    return values[MODEL_PARAMETERS] / (double)data->count;
}

static void train(
    struct worker *worker, const struct data_set *data, const char *checkpoint_path, size_t steps) {
    struct checkpoint state;
    agree_on_start(worker, &state, checkpoint_path);
    if (worker->rank == 0) {
        printf("continuing from step %zu\n", (size_t)state.step);
    }
    double loss = 0;
    while ((size_t)state.step < steps) {
        loss = train_step(worker, data, &state);
        size_t done = (size_t)state.step;
        if (worker->rank == 0 && done % STEPS_BETWEEN_REPORTS == 0) {
            printf("step %zu loss %.6f\n", done, loss);
        }
        if (worker->rank == 0 && (done % STEPS_BETWEEN_CHECKPOINTS == 0 || done == steps)) {
            checkpoint_save(&state, checkpoint_path);
        }
    }
    if (worker->rank == 0) {
        printf("final loss %.17g\n", loss);
    }
}

int main(int argument_count, char **arguments) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (argument_count != 4) {
        fprintf(stderr, "usage: train DATA CHECKPOINT STEPS\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct data_set data;
    data_set_load(&data, arguments[1]);
    bool was_standby = muster_standby_wait() == 1;
    if (was_standby) {
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
    struct worker worker;
    worker_init(&worker);
    printf("worker %zu of %zu: pid %ld, attempt %s, first instruction at %lld.%09ld\n", worker.rank,
        worker.world_size, (long)getpid(), worker.attempt, (long long)now.tv_sec, now.tv_nsec);
    if (was_standby) {
        printf("worker %zu was a standby worker\n", worker.rank);
    }
    train(&worker, &data, arguments[2], (size_t)strtoul(arguments[3], NULL, 10));
    data_set_clear(&data);
    store_disconnect(&worker.store);
    return 0;
}
