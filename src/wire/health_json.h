/* SPDX-License-Identifier: BSD-3-Clause */
/* A verdict over an agent's health as a JSON document for whoever probes it, and the HTTP status
 * that goes with it. */
#ifndef MUSTER_WIRE_HEALTH_JSON_H
#define MUSTER_WIRE_HEALTH_JSON_H

#include "base/text.h"
#include "core/health.h"

/* What a prober may want to know besides; strings are borrowed. */
struct health_report {
    struct health_verdict verdict;
    const char *run_id;
    int restarts;
    int max_restarts;
    int workers;
    int running_workers;
};

/* 200 or 503. */
int health_http_status(const struct health_verdict *verdict);

/* Appends the document and a newline: {"status": "alive", "phase": "running", "reason": …}. */
void health_json_write(const struct health_report *report, struct text *out);

#endif
