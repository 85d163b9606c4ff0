/* SPDX-License-Identifier: BSD-3-Clause */
/* Exit statuses of the commands, beside EXIT_SUCCESS and EXIT_FAILURE. */
#ifndef MUSTER_MAIN_EXIT_STATUS_H
#define MUSTER_MAIN_EXIT_STATUS_H

#define EXIT_STATUS_USAGE 2 /* the command line is invalid; the same status as argparse */

#endif
