/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of the example: a network with one hidden layer that predicts a number from a row of
 * features; its data file; its gradients. Plain arithmetic, without any knowledge of other
 * workers. */
#ifndef MUSTER_EXAMPLES_TRAIN_MODEL_H
#define MUSTER_EXAMPLES_TRAIN_MODEL_H

#include <stddef.h>

#define MODEL_FEATURES 6
#define MODEL_HIDDEN 24
#define MODEL_PARAMETERS (MODEL_HIDDEN * (MODEL_FEATURES + 2) + 1)

struct data_row {
    double features[MODEL_FEATURES];
    double target;
};

struct data_set {
    struct data_row *rows;
    size_t count;
};

/* Reads a comma-separated file: a header line, then features and target. Exits with a message. */
void data_set_load(struct data_set *out_data, const char *path);
void data_set_clear(struct data_set *data);

/* Sets the same initial parameters in every worker and every run. */
void model_init(double parameters[MODEL_PARAMETERS]);

/* Adds to `gradient` the gradient of the squared error over every `stride`-th row from `first` on.
 * Returns the squared error itself. */
double model_add_gradient(const double parameters[MODEL_PARAMETERS], const struct data_set *data,
    size_t first, size_t stride, double gradient[MODEL_PARAMETERS]);

#endif
