/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints keys and values of a store on stdout. */
#ifndef MUSTER_MAIN_STORE_STORE_PRINT_H
#define MUSTER_MAIN_STORE_STORE_PRINT_H

#include <muster/store.h>

/* Prints the bytes unchanged, without a newline. On a terminal they are made printable. */
void store_print_exact(struct muster_slice bytes);

/* Prints one line: printable ASCII unchanged, a backslash doubled, every other byte as \xNN. */
void store_print_line(struct muster_slice bytes);

#endif
