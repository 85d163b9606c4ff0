/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics of an agent, one by one: MetricData and MetricHandler of
 * torch/distributed/elastic/metrics/api.py. A program takes them with the callback `metric` of
 * muster/agent.h. Their group is "torchelastic", and their names are TorchElastic's:
 *
 *     SimpleElasticAgent.{run,_rendezvous,_assign_worker_ranks,_initialize_workers,
 *         _restart_workers}.{success,failure,duration.ms}
 *     LocalElasticAgent.{_start_workers,_monitor_workers,_stop_workers}.…
 *     workers.ROLE.{remaining_restarts,healthy,failed,succeeded}
 *     workers.ROLE.{run_total,run_success_with_retries,run_success_no_retries,
 *         run_failed_with_retries,run_failed_no_retries,flakiness}
 *
 * TorchElastic looks at its workers ten times a second, and tells each time. Muster does not look:
 * _monitor_workers and the state of the workers come when that changes. */
#ifndef MUSTER_METRICS_H
#define MUSTER_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include <muster/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Borrowed for the callback. Fields may be added at the end. */
struct muster_metric {
    double timestamp; /* seconds since 1970 */
    const char *group_name;
    const char *name;
    int64_t value;
};

/* The line of ConsoleMetricHandler, without a newline: "[1700000000.5][torchelastic]: NAME=VALUE".
 * Writes at most `size` bytes with the NUL, and sets *out_length, which may be NULL, to the length
 * of the whole line without it. `buffer` may be NULL where `size` is 0. MUSTER_ERROR_INVALID,
 * MUSTER_ERROR_LIMIT where the line was cut. */
enum muster_error muster_metric_format(const struct muster_metric *metric, char *buffer,
    size_t size, size_t *out_length, struct muster_failure *failure);

#ifdef __cplusplus
}
#endif

#endif
