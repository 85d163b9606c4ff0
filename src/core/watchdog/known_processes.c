/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/watchdog/known_processes.h"

static size_t place_of(int64_t pid) {
    return (size_t)((uint64_t)pid % KNOWN_PROCESSES_PLACES);
}

bool known_processes_find(const struct known_processes *known, int64_t pid, struct instant now,
    uint64_t *out_start_time) {
    const struct known_process *process = &known->places[place_of(pid)];
    if (process->pid != pid || !instant_is_before(now, process->trusted_until)) {
        return false;
    }
    *out_start_time = process->start_time;
    return true;
}

void known_processes_add(
    struct known_processes *known, int64_t pid, uint64_t start_time, struct instant now) {
    struct duration trust = duration_from_milliseconds(KNOWN_PROCESSES_TRUST_MILLISECONDS);
    known->places[place_of(pid)] =
        (struct known_process){pid, start_time, instant_after(now, trust)};
}

void known_processes_forget(struct known_processes *known, int64_t pid) {
    struct known_process *process = &known->places[place_of(pid)];
    if (process->pid == pid) {
        process->pid = 0;
    }
}
