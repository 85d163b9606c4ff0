/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and numbers of Linux signals, for floors that have no <signal.h> worth the name: C17 knows
 * six. The numbering is the generic one (x86, ARM, RISC-V, POWER, s390); real-time signals count
 * from 34, as glibc leaves them to programs. Sending and handling signals is the host's. */
#ifndef MUSTER_CORE_SIGNAL_NAME_H
#define MUSTER_CORE_SIGNAL_NAME_H

#define SIGNAL_NUMBER_KILL 9
#define SIGNAL_NUMBER_CHILD 17
#define SIGNAL_NUMBER_STOP 19
#define SIGNAL_NUMBER_REAL_TIME_FIRST 34
#define SIGNAL_NUMBER_REAL_TIME_LAST 64

/* "SIGTERM" for 15, "SIGRTMIN+1" for 35, "SIGRTMAX" for 64; NULL when no signal has this number.
 * The string is static. */
const char *signal_name_from_number(int number);

/* 15 for "SIGTERM"; also the aliases SIGIOT, SIGCLD, SIGPOLL, and SIGRTMIN+n, SIGRTMAX-n. The name
 * is taken exactly: upper case, with its "SIG". 0 when there is no such signal. */
int signal_number_from_name(const char *name);

#endif
