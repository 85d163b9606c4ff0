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
    for (int fact = 0; fact < JOB_FACT_COUNT; fact++) {
        free(announcement->facts[fact]);
    }
    *announcement = (struct job_announcement){0};
}

static const char *const fact_names[JOB_FACT_COUNT] = {
    "endpoint", "backend", "socket", "state", "log_dir", "slurm_job", "version", "node"};

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

static void write_whole(const char *text, struct text *out) {
    struct text valid = {0};
    json_repair_text(slice_from_string(text), &valid);
    json_text_write(text_string(&valid), out);
    text_clear(&valid);
}

/* What there is no room for, behind `length` bytes, is not said. */
static void write_fact(const struct job_announcement *announcement, enum job_fact fact,
    size_t length, struct text *out) {
    const char *text = announcement->facts[fact];
    struct text member = {0};
    if (text == NULL || strlen(text) > JOB_ANNOUNCEMENT_TEXT_MAXIMUM) {
        return;
    }
    text_append_format(&member, ", \"%s\": ", fact_names[fact]);
    write_whole(text, &member);
    if (length + member.length + sizeof "}\n" <= JOB_ANNOUNCEMENT_MAXIMUM) {
        text_append(out, text_string(&member));
    }
    text_clear(&member);
}

void job_announcement_write(const struct job_announcement *announcement, struct text *out) {
    size_t start = out->length;
    text_append(out, "{\"run_id\": ");
    write_run_id(announcement->run_id, out);
    if (announcement->host != NULL) {
        text_append(out, ", \"host\": ");
        write_whole(announcement->host, out);
        text_append_format(out, ", \"port\": %d", announcement->port);
    }
    text_append_format(out, ", \"pid\": %" PRId64, announcement->pid);
    if (announcement->began != 0) {
        text_append_format(out, ", \"began\": %" PRId64, announcement->began);
    }
    for (int fact = 0; fact < JOB_FACT_COUNT; fact++) {
        write_fact(announcement, (enum job_fact)fact, out->length - start, out);
    }
    text_append(out, "}\n");
}

/* Reading. */

static bool is_host(const char *host) {
    size_t length = strlen(host);
    return length > 0 && length <= JOB_ANNOUNCEMENT_HOST_MAXIMUM && host[0] != '-' &&
           strspn(host, HOST_CHARACTERS) == length;
}

/* Both or none. */
static bool read_store(const struct json_value *root, const char **out_host, int64_t *out_port) {
    const struct json_value *port = json_value_member(root, "port");
    *out_host = json_value_text(json_value_member(root, "host"));
    *out_port = 0;
    if (*out_host == NULL) {
        return port == NULL && json_value_member(root, "host") == NULL;
    }
    return is_host(*out_host) && json_value_integer(port, out_port) && *out_port >= 1 &&
           *out_port <= PORT_MAXIMUM;
}

static void read_facts(const struct json_value *root, struct job_announcement *announcement) {
    for (int fact = 0; fact < JOB_FACT_COUNT; fact++) {
        const char *text = json_value_text(json_value_member(root, fact_names[fact]));
        if (text != NULL && strlen(text) <= JOB_ANNOUNCEMENT_TEXT_MAXIMUM) {
            announcement->facts[fact] = text_format("%s", text);
            utf8_make_line_printable(announcement->facts[fact]);
        }
    }
}

static enum failure_code read_root(
    const struct json_value *root, struct job_announcement *out_announcement) {
    const char *run_id = json_value_text(json_value_member(root, "run_id"));
    const char *host;
    int64_t port;
    int64_t pid;
    int64_t began = 0;
    if (run_id == NULL || !read_store(root, &host, &port) ||
        !json_value_integer(json_value_member(root, "pid"), &pid) || pid < 1) {
        return FAILURE_MALFORMED;
    }
    (void)json_value_integer(json_value_member(root, "began"), &began);
    if (strlen(run_id) > JOB_ANNOUNCEMENT_RUN_ID_MAXIMUM) {
        return FAILURE_LIMIT;
    }
    *out_announcement = (struct job_announcement){.run_id = text_format("%s", run_id),
        .host = host != NULL ? text_format("%s", host) : NULL,
        .port = (int)port,
        .pid = pid,
        .began = began};
    read_facts(root, out_announcement);
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
