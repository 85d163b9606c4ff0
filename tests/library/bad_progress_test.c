/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of muster/progress.h. */
#include "unit.h"

#include <muster/progress.h>

#include "library/bad_input.h"

static bool step(int64_t n) {
    muster_progress_step(n);
    return true;
}

static bool checkpoint(int64_t n) {
    muster_progress_checkpoint(n);
    return true;
}

TEST(numbers_of_steps) {
    ALLOWED(muster_progress_step, n, BELOW, "it is passed over", step(-1));
    ALLOWED(muster_progress_step, n, ABOVE, "the agent passes over what is too large", step(INT64_MAX));
    ALLOWED(muster_progress_checkpoint, n, BELOW, "it is passed over", checkpoint(-1));
    ALLOWED(muster_progress_checkpoint, n, ABOVE, "the agent passes over what is too large",
        checkpoint(INT64_MAX));
}
