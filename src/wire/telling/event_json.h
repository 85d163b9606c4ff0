/* SPDX-License-Identifier: BSD-3-Clause */
/* An event record as one line of JSON, with the same members as TorchElastic: Event.serialize in
 * torch/distributed/elastic/events/api.py with the metadata of SimpleElasticAgent._construct_event
 * and LocalElasticAgent._log_watchdog_event. One difference: "timestamp" is the time in
 * milliseconds, where TorchElastic always writes 0. This module also writes the raw error of a
 * failed worker, as ProcessFailure.error_file_data in
 * torch/distributed/elastic/multiprocessing/errors/__init__.py. */
#ifndef MUSTER_WIRE_TELLING_EVENT_JSON_H
#define MUSTER_WIRE_TELLING_EVENT_JSON_H

#include "base/bytes.h"
#include "base/text.h"
#include "core/telling/event_record.h"
#include "core/workers/worker_group.h"

/* Longer raw errors are left out, because a record is one line that is written at once. */
#define EVENT_JSON_MAXIMUM_ERROR 65536

/* Appends the record and a newline. Bytes that are not UTF-8 are replaced. */
void event_json_write(const struct event_record *record, struct text *out);

/* Appends a record of the rendezvous and a newline, as RdzvEvent.serialize does. */
void event_json_write_rendezvous(const struct event_rendezvous *record, struct text *out);

/* Appends the raw error of a worker that ended with `exit`: the content of its error file, or a
 * substitute when the file is empty, too long or not JSON. */
void event_json_write_error(struct slice error_file, struct process_exit exit, struct text *out);

#endif
