/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/process_name.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/process/process_table.h"

/* Overwrites the command line that was inherited from the agent. */
void process_name_take(const char *name) {
    struct kernel_process_stat self;
    prctl(PR_SET_NAME, name);
    if (!process_table_read(getpid(), &self) || self.arguments_end <= self.arguments_start) {
        return;
    }
    int fd = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
    if (fd == -1) {
        return;
    }
    size_t size = self.arguments_end - self.arguments_start;
    char *arguments = memory_allocate(size);
    size_t length = strlen(name) < size ? strlen(name) : size - 1;
    memcpy(arguments, name, length);
    ssize_t written = pwrite(fd, arguments, size, (off_t)self.arguments_start);
    (void)written;
    free(arguments);
    close(fd);
}
