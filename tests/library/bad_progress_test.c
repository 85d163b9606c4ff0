/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of muster/progress.h. */
#include "unit.h"

#include <muster/progress.h>

#include "library/bad_input.h"

TEST(numbers_of_steps) {
    ALLOWED(muster_progress_step, n, BELOW, "it is passed over", (muster_progress_step(-1), true));
    ALLOWED(muster_progress_step, n, ABOVE, "the agent passes over what is too large",
        (muster_progress_step(INT64_MAX), true));
    ALLOWED(muster_progress_checkpoint, n, BELOW, "it is passed over",
        (muster_progress_checkpoint(-1), true));
    ALLOWED(muster_progress_checkpoint, n, ABOVE, "the agent passes over what is too large",
        (muster_progress_checkpoint(INT64_MAX), true));
}
