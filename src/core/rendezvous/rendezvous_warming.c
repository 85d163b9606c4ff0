/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_warming.h"

/* torchrun's nodes keep no list of what to make ready. A job whose first workers are done lets
 * nobody in. */
static bool is_worth_it(const struct rendezvous_view *view) {
    const struct rendezvous_state *seen = &view->seen;
    return seen->is_complete && !seen->is_closed && !seen->is_draining &&
           rendezvous_state_participants(seen) > 0 &&
           !rendezvous_state_has_foreign_participant(seen) && rendezvous_view_self(view) == NULL;
}

bool rendezvous_warming_holds(struct rendezvous_warming *warming,
    const struct rendezvous_view *view, struct instant now, bool *out_begins) {
    *out_begins = false;
    if (warming->patience.nanoseconds == 0) {
        return false;
    }
    if (!is_worth_it(view) || moment_has_come(&warming->end, now)) {
        rendezvous_warming_finish(warming);
        return false;
    }
    if (!warming->end.is_set) {
        *out_begins = true;
        moment_set_after(&warming->end, now, warming->patience);
    }
    return true;
}

void rendezvous_warming_finish(struct rendezvous_warming *warming) {
    *warming = (struct rendezvous_warming){0};
}

void rendezvous_warming_wake(
    const struct rendezvous_warming *warming, struct instant now, struct moment *next) {
    moment_wake(&warming->end, now, next);
}
