/* SPDX-License-Identifier: BSD-3-Clause */
/* How Python shows a string in a message: repr(). Errors in the command line are worded as argparse
 * words them, so quotes and escapes are part of what users and their scripts expect. */
#ifndef MUSTER_BASE_PYTHON_REPR_H
#define MUSTER_BASE_PYTHON_REPR_H

#include "base/text.h"

/* Appends repr(string): quoted, with control characters escaped. A byte that is not UTF-8 is
 * written as the lone surrogate that Python uses for it ("\udcff"). */
void python_repr_append(struct text *out, const char *string);

#endif
