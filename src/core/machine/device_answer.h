/* SPDX-License-Identifier: BSD-3-Clause */
/* What the workers' Python has written when it was asked how many devices of a name there are
 * (agent/workers/device_question has the question). Plug-ins print what they like before the
 * answer, which is the last line that begins with its mark. */
#ifndef MUSTER_CORE_MACHINE_DEVICE_ANSWER_H
#define MUSTER_CORE_MACHINE_DEVICE_ANSWER_H

enum device_answer {
    DEVICE_ANSWER_NONE,    /* nothing that makes sense */
    DEVICE_ANSWER_COUNT,   /* so many, 0 or more */
    DEVICE_ANSWER_UNKNOWN, /* nobody knows a device of this name, for that reason */
    DEVICE_ANSWER_TROUBLE, /* it cannot be told, for that reason */
};

/* Reads and changes `text`, to which the reason points: a line that can be shown. */
enum device_answer device_answer_read(char *text, int *out_count, const char **out_reason);

#endif
