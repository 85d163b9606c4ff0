/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/telling/job_announcement.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "wire/json/json_document.h"

#define PORT_MAXIMUM 65535
/* What a name or an address has, so that a line for a shell can be made of it. */
#define HOST_CHARACTERS                                                                            \
    "abcdefghijklmnopqrstuvwxyz"                                                                   \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"                                                                   \
    "0123456789.:-_%"

void job_announcement_clear(struct job_announcement *announcement) {
    free(announcement->run_id);
    free(announcement->host);
    *announcement = (struct job_announcement){0};
}

/* Writing. */

/* Whole characters, and no more of them than may be read again. */
static void write_run_id(const char *run_id, struct text *out) {
    struct text valid = {0};
    struct text shown = {0};
    json_repair_text(slice_from_string(run_id), &valid);
    size_t length = valid.length;
    if (length > JOB_ANNOUNCEMENT_RUN_ID_MAXIMUM) {
        length = JOB_ANNOUNCEMENT_RUN_ID_MAXIMUM;
        while (((unsigned char)valid.data[length] & 0xc0) == 0x80) {
            length--;
        }
    }
    text_append_bytes(&shown, text_string(&valid), length);
    json_text_write(text_string(&shown), out);
    text_clear(&valid);
    text_clear(&shown);
}

static void write_host(const char *host, struct text *out) {
    struct text valid = {0};
    json_repair_text(slice_from_string(host), &valid);
    json_text_write(text_string(&valid), out);
    text_clear(&valid);
}

void job_announcement_write(const struct job_announcement *announcement, struct text *out) {
    text_append(out, "{\"run_id\": ");
    write_run_id(announcement->run_id, out);
    text_append(out, ", \"host\": ");
    write_host(announcement->host, out);
    text_append_format(
        out, ", \"port\": %d, \"pid\": %" PRId64 "}\n", announcement->port, announcement->pid);
}

/* Reading. */

static bool is_host(const char *host) {
    size_t length = strlen(host);
    return length > 0 && length <= JOB_ANNOUNCEMENT_HOST_MAXIMUM && host[0] != '-' &&
           strspn(host, HOST_CHARACTERS) == length;
}

static enum failure_code read_root(
    const struct json_value *root, struct job_announcement *out_announcement) {
    const char *run_id = json_value_text(json_value_member(root, "run_id"));
    const char *host = json_value_text(json_value_member(root, "host"));
    int64_t port;
    int64_t pid;
    if (run_id == NULL || host == NULL || !is_host(host) ||
        !json_value_integer(json_value_member(root, "port"), &port) || port < 1 ||
        port > PORT_MAXIMUM || !json_value_integer(json_value_member(root, "pid"), &pid) ||
        pid < 1) {
        return FAILURE_MALFORMED;
    }
    if (strlen(run_id) > JOB_ANNOUNCEMENT_RUN_ID_MAXIMUM) {
        return FAILURE_LIMIT;
    }
    *out_announcement = (struct job_announcement){.run_id = text_format("%s", run_id),
        .host = text_format("%s", host),
        .port = (int)port,
        .pid = pid};
    utf8_make_line_printable(out_announcement->run_id);
    return FAILURE_NONE;
}

enum failure_code job_announcement_read(
    struct slice text, struct job_announcement *out_announcement) {
    struct json_document *document;
    enum failure_code code = json_document_parse(text, JOB_ANNOUNCEMENT_MAXIMUM, &document, NULL);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = read_root(json_document_root(document), out_announcement);
    json_document_free(document);
    return code;
}
