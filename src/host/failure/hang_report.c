/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/failure/hang_report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "host/loop/clock.h"

#define PIECE_SIZE 4096

bool hang_report_open(struct hang_report *report, const char *path) {
    report->fd = -1;
    report->is_held = false;
    if (path != NULL) {
        report->fd = open(path,
            O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
        report->error = report->fd >= 0 ? 0 : errno;
    }
    return report->fd >= 0;
}

void hang_report_flush(struct hang_report *report) {
    size_t written = 0;
    if (report->is_held) {
        return;
    }
    while (report->fd >= 0 && written < report->text.length) {
        ssize_t length =
            write(report->fd, report->text.data + written, report->text.length - written);
        if (length < 0 && errno != EINTR) {
            report->error = report->error != 0 ? report->error : errno;
            break;
        }
        written += length < 0 ? 0 : (size_t)length;
    }
    text_clear(&report->text);
}

void hang_report_close(struct hang_report *report) {
    hang_report_flush(report);
    if (report->fd >= 0) {
        close(report->fd);
        report->fd = -1;
    }
}

struct duration hang_report_time_left(const struct hang_report *report) {
    if (report->is_abandoned != NULL && atomic_load(report->is_abandoned)) {
        return (struct duration){0};
    }
    return instant_until(clock_now(), report->end);
}

bool hang_report_is_over(const struct hang_report *report) {
    return hang_report_time_left(report).nanoseconds == 0;
}

bool hang_report_read(const char *path, size_t ceiling, struct bytes *out_bytes) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    char piece[PIECE_SIZE];
    size_t total = 0;
    ssize_t length = 0;
    while (total < ceiling &&
           ((length = read(fd, piece, sizeof piece)) > 0 || (length < 0 && errno == EINTR))) {
        size_t taken = length < 0 ? 0 : (size_t)length;
        if (bytes_append(out_bytes, piece, taken) != FAILURE_NONE) {
            break;
        }
        total += taken;
    }
    int error = length < 0 ? errno : 0;
    close(fd);
    errno = error;
    return total > 0;
}

void hang_report_append_error(struct hang_report *report, const char *what, int error) {
    bool is_forbidden = error == EACCES || error == EPERM;
    text_append_format(&report->text, "  %s cannot be read: %s%s\n", what,
        failure_system_words(error),
        is_forbidden
            ? " (the agent may not look into this process: it runs as another user, is not "
              "dumpable, or kernel.yama.ptrace_scope forbids it)"
            : "");
}

void hang_report_append_safely(struct text *text, const char *bytes, size_t length) {
    size_t start = text->length;
    text_append_bytes(text, bytes, length);
    if (length > 0) {
        text->length = start + utf8_make_printable(text->data + start, length);
        text->data[text->length] = '\0';
    }
}
