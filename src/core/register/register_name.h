/* SPDX-License-Identifier: BSD-3-Clause */
/* How a run id becomes part of a name in a place that serves many jobs: of a directory, of a key.
 * Two run ids never give one name. */
#ifndef MUSTER_CORE_REGISTER_REGISTER_NAME_H
#define MUSTER_CORE_REGISTER_REGISTER_NAME_H

#include "base/text.h"

/* Appends the name: letters, digits, ".", "-" and "_" as they are, other bytes as "%" and two
 * hexadecimal digits. */
void register_name_write(const char *id, struct text *out);

/* The same where a name may have few characters and be short: letters, digits, "." and "-" as they
 * are, other bytes as "_" and two hexadecimal digits. Of a name that is longer than
 * REGISTER_NAME_SHORT the first characters stay, with "__" and a hash of the run id behind them. */
#define REGISTER_NAME_SHORT 42
void register_name_write_short(const char *id, struct text *out);

#endif
