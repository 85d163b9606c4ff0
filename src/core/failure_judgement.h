/* SPDX-License-Identifier: BSD-3-Clause */
/* What part a worker's failure has in the end of a job whose root cause is on another node: a
 * consequence, or a failure of its own. Judges by how the worker ended and, where a connection may
 * have broken, by the words that PyTorch's communication libraries have for it; it can be wrong,
 * and nothing but a report depends on it. */
#ifndef MUSTER_CORE_FAILURE_JUDGEMENT_H
#define MUSTER_CORE_FAILURE_JUDGEMENT_H

#include <stdbool.h>

#include "core/failure_account.h"

enum failure_judgement {
    FAILURE_JUDGED_INDEPENDENT,  /* nothing in it points elsewhere */
    FAILURE_JUDGED_TERMINATED,   /* ended by the signal that stopped the group */
    FAILURE_JUDGED_DISCONNECTED, /* it lost another worker, or waited for it in vain */
    FAILURE_JUDGED_UNKNOWN,      /* it left no words to judge by */
};

enum failure_judgement failure_judge(
    const struct failure_account *account, bool is_from_our_signal);

/* One phrase for the report: "consequence: ended by the launcher". */
const char *failure_judgement_text(enum failure_judgement judgement);

#endif
