/* SPDX-License-Identifier: BSD-3-Clause */
/* Judges the failure of a worker when the root cause of the job's end is on another node: it is a
 * consequence of that cause, or independent of it. The judgement uses how the worker ended. For a
 * connection that may have broken it also uses the error messages of PyTorch's communication
 * libraries. It can be wrong, so only the report uses it. */
#ifndef MUSTER_CORE_FAILURE_FAILURE_JUDGEMENT_H
#define MUSTER_CORE_FAILURE_FAILURE_JUDGEMENT_H

#include <stdbool.h>

#include "core/failure/failure_account.h"

enum failure_judgement {
    FAILURE_JUDGED_INDEPENDENT,  /* nothing in it points to another node */
    FAILURE_JUDGED_TERMINATED,   /* ended by the signal that stopped the worker group */
    FAILURE_JUDGED_DISCONNECTED, /* it lost its connection to another worker, or waited too long for
                                    it */
    FAILURE_JUDGED_UNKNOWN,      /* it left no message */
};

enum failure_judgement failure_judge(
    const struct failure_account *account, bool is_from_our_signal);

/* A phrase for the report, for example "consequence: ended by the launcher". */
const char *failure_judgement_text(enum failure_judgement judgement);

#endif
