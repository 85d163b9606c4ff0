/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster store serve`: a TCPStore server as a process of its own. */
#ifndef MUSTER_MAIN_STORE_SERVE_H
#define MUSTER_MAIN_STORE_SERVE_H

#include "base/text.h"

/* Prints one line, "PORT <n>", when clients can connect; returns 0 after SIGTERM or SIGINT, 1 when
 * the port cannot be had, 2 for a command line that is not understood. */
int store_serve(const struct text_list *arguments, const struct text_list *environment);

#endif
