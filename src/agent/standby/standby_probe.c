/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/standby/standby_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/standby/agent_standby.h"
#include "core/standby/standby_environment.h"
#include "host/standby/memory_file.h"
#include "wire/standby/standby_record.h"

/* The first line of a record is shorter. */
#define HELLO_MAXIMUM 64

static enum failure_code start(struct standby_probe *probe,
    const struct agent_standby_starter *starter, const struct text_list *environment, int nowhere,
    struct failure *failure) {
    const int descriptors[] = {nowhere, nowhere, nowhere, probe->record};
    struct process process;
    enum failure_code code =
        starter->probe(starter->context, environment, descriptors, &process, failure);
    if (code == FAILURE_NONE) {
        probe->pid = process.pid;
        process_family_add_spare(starter->family, &process);
    }
    return code;
}

enum failure_code standby_probe_start(struct standby_probe *probe,
    const struct agent_standby_starter *starter, const struct text_list *environment,
    const char *hook_directory, struct failure *failure) {
    struct text_list dressed = {0};
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nowhere == -1) {
        return failure_set_system(failure, errno, "cannot open /dev/null");
    }
    text_list_add_all(&dressed, environment);
    const struct standby_dress dress = {.role = STANDBY_RECORD, .hook_directory = hook_directory};
    standby_environment_dress(&dressed, &dress);
    enum failure_code code = memory_file_with_head(
        "muster-standby-record", STANDBY_RECORD_HEAD, &probe->record, failure);
    if (code == FAILURE_NONE) {
        code = start(probe, starter, &dressed, nowhere, failure);
        if (code != FAILURE_NONE) {
            close(probe->record);
        }
    }
    close(nowhere);
    text_list_clear(&dressed);
    return code;
}

bool standby_probe_end(struct standby_probe *probe) {
    bool has_hello = probe->pid != 0 && standby_probe_has_hello(probe->record, probe->pid);
    if (probe->pid != 0) {
        close(probe->record);
    }
    *probe = (struct standby_probe){0};
    return has_hello;
}

bool standby_probe_has_hello(int record, pid_t pid) {
    struct bytes bytes = {0};
    struct slice imports;
    int64_t greeter;
    memory_file_read(record, STANDBY_RECORD_HEAD, HELLO_MAXIMUM, &bytes);
    bool has_hello =
        standby_record_read_hello(bytes_slice(&bytes), &greeter, &imports) == FAILURE_NONE &&
        greeter == (int64_t)pid;
    bytes_clear(&bytes);
    return has_hello;
}
