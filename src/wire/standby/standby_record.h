/* SPDX-License-Identifier: BSD-3-Clause */
/* What a worker records for standby workers: a text that begins with the line "hello 1 PID" when
 * the hook was reached, and then has one line for each import, as core/standby/learned_list has
 * them. The worker appends to it at any time, and may write anything. */
#ifndef MUSTER_WIRE_STANDBY_STANDBY_RECORD_H
#define MUSTER_WIRE_STANDBY_STANDBY_RECORD_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "core/standby/learned_list.h"

/* In front of the text the file has a page that the agent and the worker share, for another purpose
 * (host/process/death_notice.h). */
#define STANDBY_RECORD_HEAD 4096
/* The most bytes of a record that are read. */
#define STANDBY_RECORD_MAXIMUM LEARNED_LIST_TEXT_MAXIMUM

/* Reads the first line, and sets `out_imports` to what follows it. FAILURE_INCOMPLETE when it is
 * not there yet, FAILURE_MALFORMED when it is another line, FAILURE_UNSUPPORTED for another
 * version. */
__attribute__((warn_unused_result)) enum failure_code standby_record_read_hello(
    struct slice record, int64_t *out_pid, struct slice *out_imports);

#endif
