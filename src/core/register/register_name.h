/* SPDX-License-Identifier: BSD-3-Clause */
/* How a run id becomes part of a name in a place that serves many jobs: of a directory, of a key.
 * Two run ids never give one name. */
#ifndef MUSTER_CORE_REGISTER_REGISTER_NAME_H
#define MUSTER_CORE_REGISTER_REGISTER_NAME_H

#include "base/text.h"

/* Appends the name: letters, digits, ".", "-" and "_" as they are, other bytes as "%" and two
 * hexadecimal digits. */
void register_name_write(const char *id, struct text *out);

#endif
