/* SPDX-License-Identifier: BSD-3-Clause */
/* How Python shows a string in a message: repr(). The reader's mistakes are worded as argparse
 * words them, so quotes and escapes are part of what users and their scripts know. */
#ifndef MUSTER_OPTIONS_PYTHON_REPR_H
#define MUSTER_OPTIONS_PYTHON_REPR_H

#include "base/text.h"

/* Appends repr(string): quoted, control characters escaped, bytes that are not UTF-8 as the lone
 * surrogates Python keeps them as ("\udcff"). */
void python_repr_append(struct text *out, const char *string);

#endif
