/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/round/round_admission.h"

/* Before the effects that come with it, so that the store knows whom it serves before they act. */
static void push(struct round_step *step, const char *addresses, const char *silent) {
    round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_ADMIT,
                              .admitted = {.addresses = addresses, .silent = silent}});
}

void round_admission_tell(struct round_step *step, const struct role_info *infos, size_t count) {
    struct round_exchange *exchange = step->exchange;
    if (!exchange->settings.is_store_for_round) {
        return;
    }
    text_clear(&exchange->admitted);
    text_clear(&exchange->silent);
    for (size_t i = 0; i < count; i++) {
        if (infos[i].addresses == NULL) {
            round_step_describe_node(step, (int)i, &exchange->silent);
            push(step, NULL, text_string(&exchange->silent));
            return;
        }
        text_append_format(&exchange->admitted, "%s%s", i == 0 ? "" : " ", infos[i].addresses);
    }
    push(step, text_string(&exchange->admitted), NULL);
}

void round_admission_tell_nothing(struct round_step *step) {
    if (step->exchange->settings.is_store_for_round && round_step_is_first(step)) {
        push(step, NULL, NULL);
    }
}
