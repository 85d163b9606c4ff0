/* SPDX-License-Identifier: BSD-3-Clause */
/* A verdict over an agent's health, as a JSON document for probes, and the HTTP status that belongs
 * to it. */
#ifndef MUSTER_WIRE_TELLING_HEALTH_JSON_H
#define MUSTER_WIRE_TELLING_HEALTH_JSON_H

#include "base/text.h"
#include "core/telling/health.h"

/* Further facts for the document. Strings are borrowed. */
struct health_report {
    struct health_verdict verdict;
    const char *run_id;
    int restarts;
    int max_restarts;
    int workers;
    int running_workers;
};

/* Returns 200 or 503. */
int health_http_status(const struct health_verdict *verdict);

/* Appends the document and a newline: {"status": "alive", "phase": "running", "reason": …}. */
void health_json_write(const struct health_report *report, struct text *out);

#endif
