/* SPDX-License-Identifier: BSD-3-Clause */
/* The checkpoint from which a restarted group continues: the step and the parameters. The file is
 * either the old one or the new one, and never half of each. */
#ifndef MUSTER_EXAMPLES_TRAIN_CHECKPOINT_H
#define MUSTER_EXAMPLES_TRAIN_CHECKPOINT_H

#include "model.h"

struct checkpoint {
    double step; /* steps done; it is a double, so that the struct can be sent as one array */
    double parameters[MODEL_PARAMETERS];
};

/* Writes the file; exits with a message on failure. */
void checkpoint_save(const struct checkpoint *checkpoint, const char *path);

/* Reads the file, or starts afresh where there is none. */
void checkpoint_load_or_init(struct checkpoint *out_checkpoint, const char *path);

#endif
