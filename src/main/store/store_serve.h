/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster store serve`: a TCPStore server as a process of its own. */
#ifndef MUSTER_MAIN_STORE_STORE_SERVE_H
#define MUSTER_MAIN_STORE_STORE_SERVE_H

#include "base/text.h"

/* Prints one line, "PORT <n>", when clients can connect. Returns 0 after SIGTERM or SIGINT, 1 when
 * the port cannot be opened, 2 when the command line is invalid. */
int store_serve(const struct text_list *arguments, const struct text_list *environment);

#endif
