/* SPDX-License-Identifier: BSD-3-Clause */
/* How keys and values of a store are shown on stdout. */
#ifndef MUSTER_MAIN_STORE_PRINT_H
#define MUSTER_MAIN_STORE_PRINT_H

#include "base/bytes.h"

/* The bytes as they are, nothing added. */
void store_print_exact(struct slice bytes);

/* One line: printable ASCII as it is, a backslash doubled, everything else as \xNN. */
void store_print_line(struct slice bytes);

#endif
