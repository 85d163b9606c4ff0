/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/standby/standby_failures.h"

bool standby_failures_take_death(struct standby_failures *failures, struct duration *out_pause) {
    if (++failures->deaths >= STANDBY_DEATHS_MAXIMUM) {
        return false;
    }
    *out_pause = duration_from_seconds(STANDBY_BACKOFF_SECONDS << (failures->deaths - 1));
    return true;
}

bool standby_failures_take_unsuited(struct standby_failures *failures, bool is_new, int told) {
    failures->cuts += is_new ? 1 : 0;
    return failures->cuts <= STANDBY_CUTS_MAXIMUM && told < failures->cuts;
}
