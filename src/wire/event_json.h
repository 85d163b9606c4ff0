/* SPDX-License-Identifier: BSD-3-Clause */
/* An event record as one line of JSON, member for member as TorchElastic spells it: Event.serialize
 * in torch/distributed/elastic/events/api.py over the metadata of
 * SimpleElasticAgent._construct_event and LocalElasticAgent._log_watchdog_event. One difference:
 * "timestamp" is the time, in milliseconds, where TorchElastic leaves its 0. Also the raw error of
 * a failed worker, as ProcessFailure.error_file_data in
 * torch/distributed/elastic/multiprocessing/errors/__init__.py. */
#ifndef MUSTER_WIRE_EVENT_JSON_H
#define MUSTER_WIRE_EVENT_JSON_H

#include "base/bytes.h"
#include "base/text.h"
#include "core/event_record.h"
#include "core/process_exit.h"

/* Longer raw errors are left out: a record is one line, for one write. */
#define EVENT_JSON_MAXIMUM_ERROR 65536

/* Appends the record and a newline. Text that is no UTF-8 is repaired. */
void event_json_write(const struct event_record *record, struct text *out);

/* Appends a rendezvous' own record and a newline, as RdzvEvent.serialize. */
void event_json_write_rendezvous(const struct event_rendezvous *record, struct text *out);

/* Appends what a record says as raw error of a worker that ended so: its error file, or where that
 * is empty, no JSON or too long, what stands for none. */
void event_json_write_error(struct slice error_file, struct process_exit exit, struct text *out);

#endif
