/* SPDX-License-Identifier: BSD-3-Clause */
#include "standby_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "muster/standby.h"
#include "standby_packet.h"

/* What was printed before the gate, to a file of the agent's. */
struct printed {
    char *data;
    size_t length;
};

static size_t size_of_printed(int gate, int stream) {
    struct stat status;
    off_t size = fstat(stream, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
    if (size > MUSTER_STANDBY_PRINTED_MAXIMUM) {
        muster_standby_refuse(
            gate, "the program has printed more than 65536 bytes before the gate", 0);
    }
    return (size_t)size;
}

void muster_standby_check_printed(int gate) {
    (void)size_of_printed(gate, STDOUT_FILENO);
    (void)size_of_printed(gate, STDERR_FILENO);
}

static void take_printed(int gate, int stream, struct printed *out_printed) {
    size_t size = size_of_printed(gate, stream);
    *out_printed = (struct printed){malloc(size + 1), size};
    if (out_printed->data == NULL) {
        muster_standby_refuse(gate, "no memory for what was printed", errno);
    }
    muster_standby_read_file(gate, stream, out_printed->data, out_printed->length);
}

/* Both streams may go to one file, in which everything is in order. */
static int are_one_file(int stream, int other) {
    struct stat one;
    struct stat two;
    return fstat(stream, &one) == 0 && fstat(other, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

static void write_printed(int stream, struct printed *printed) {
    size_t done = 0;
    while (done < printed->length) {
        ssize_t count = write(stream, printed->data + done, printed->length - done);
        if (count == -1 && errno != EINTR) {
            break; /* as when the program had printed it now */
        }
        done += count > 0 ? (size_t)count : 0;
    }
    free(printed->data);
}

/* A process whose standard streams are closed gets others under their numbers. */
void muster_standby_move_away(int gate, int *fds, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (fds[i] < STANDBY_STREAMS) {
            int moved = fcntl(fds[i], F_DUPFD_CLOEXEC, STANDBY_STREAMS);
            if (moved == -1) {
                muster_standby_refuse(gate, "no descriptor is left", errno);
            }
            close(fds[i]);
            fds[i] = moved;
        }
    }
}

void muster_standby_replace_streams(int gate, const int fds[STANDBY_STREAMS]) {
    struct printed printed[STANDBY_STREAMS] = {{0}};
    fflush(stdout);
    fflush(stderr);
    for (int stream = STDOUT_FILENO; stream <= STDERR_FILENO; stream++) {
        take_printed(gate, stream, &printed[stream]);
    }
    if (are_one_file(STDOUT_FILENO, STDERR_FILENO)) {
        printed[STDERR_FILENO].length = 0;
    }
    for (int stream = 0; stream < STANDBY_STREAMS; stream++) {
        if (dup2(fds[stream], stream) == -1) {
            muster_standby_refuse(gate, "cannot take over a standard stream", errno);
        }
        close(fds[stream]);
    }
    clearerr(stdin); /* it may have met its end */
    for (int stream = STDOUT_FILENO; stream <= STDERR_FILENO; stream++) {
        write_printed(stream, &printed[stream]);
    }
}
