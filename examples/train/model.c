/* SPDX-License-Identifier: BSD-3-Clause */
#include "model.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MAXIMUM_ROWS 1000000

/* The position of each part of the network in the flat array of parameters. */
#define INPUT_WEIGHT(hidden, feature) ((hidden)*MODEL_FEATURES + (feature))
#define HIDDEN_BIAS(hidden) (MODEL_HIDDEN * MODEL_FEATURES + (hidden))
#define OUTPUT_WEIGHT(hidden) (MODEL_HIDDEN * (MODEL_FEATURES + 1) + (hidden))
#define OUTPUT_BIAS (MODEL_PARAMETERS - 1)

static int parse_row(char *line, struct data_row *out_row) {
    char *rest = line;
    for (int i = 0; i <= MODEL_FEATURES; i++) {
        char *end;
        double value = strtod(rest, &end);
        char expected = i < MODEL_FEATURES ? ',' : '\n';
        if (end == rest || *end != expected) {
            return -1;
        }
        *(i < MODEL_FEATURES ? &out_row->features[i] : &out_row->target) = value;
        rest = end + 1;
    }
    return 0;
}

static void append_row(struct data_set *data, size_t *capacity, const struct data_row *row) {
    if (data->count == *capacity) {
        *capacity = *capacity == 0 ? 256 : *capacity * 2;
        data->rows = realloc(data->rows, *capacity * sizeof(*data->rows));
    }
    if (data->rows == NULL || data->count >= MAXIMUM_ROWS) {
        fprintf(stderr, "the data does not fit into memory\n");
        exit(1);
    }
    data->rows[data->count++] = *row;
}

void data_set_load(struct data_set *out_data, const char *path) {
    struct data_set data = {0};
    size_t capacity = 0;
    char line[1024];
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(line, sizeof(line), file) == NULL) {
        perror(path);
        exit(1);
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        struct data_row row;
        if (parse_row(line, &row) != 0) {
            fprintf(stderr, "%s: row %zu is not %d numbers\n", path, data.count + 1,
                MODEL_FEATURES + 1);
            exit(1);
        }
        append_row(&data, &capacity, &row);
    }
    fclose(file);
    *out_data = data;
}

void data_set_clear(struct data_set *data) {
    free(data->rows);
    *data = (struct data_set){0};
}

void model_init(double parameters[MODEL_PARAMETERS]) {
    uint64_t state = 20240229;
    for (size_t i = 0; i < MODEL_PARAMETERS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        parameters[i] = ((double)(state >> 40) / (double)(1u << 24) - 0.5) * 0.8;
    }
}

static double add_row_gradient(
    const double *parameters, const struct data_row *row, double *gradient) {
    double activation[MODEL_HIDDEN];
    double output = parameters[OUTPUT_BIAS];
    for (size_t hidden = 0; hidden < MODEL_HIDDEN; hidden++) {
        double sum = parameters[HIDDEN_BIAS(hidden)];
        for (size_t i = 0; i < MODEL_FEATURES; i++) {
            sum += parameters[INPUT_WEIGHT(hidden, i)] * row->features[i];
        }
        activation[hidden] = tanh(sum);
        output += parameters[OUTPUT_WEIGHT(hidden)] * activation[hidden];
    }
    double error = output - row->target;
    gradient[OUTPUT_BIAS] += 2 * error;
    for (size_t hidden = 0; hidden < MODEL_HIDDEN; hidden++) {
        gradient[OUTPUT_WEIGHT(hidden)] += 2 * error * activation[hidden];
        double back = 2 * error * parameters[OUTPUT_WEIGHT(hidden)] *
                      (1 - activation[hidden] * activation[hidden]);
        gradient[HIDDEN_BIAS(hidden)] += back;
        for (size_t i = 0; i < MODEL_FEATURES; i++) {
            gradient[INPUT_WEIGHT(hidden, i)] += back * row->features[i];
        }
    }
    return error * error;
}

double model_add_gradient(const double parameters[MODEL_PARAMETERS], const struct data_set *data,
    size_t first, size_t stride, double gradient[MODEL_PARAMETERS]) {
    double squared_error = 0;
    for (size_t i = first; i < data->count; i += stride) {
        squared_error += add_row_gradient(parameters, &data->rows[i], gradient);
    }
    return squared_error;
}
