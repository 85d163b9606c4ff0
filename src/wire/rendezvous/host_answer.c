/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rendezvous/host_answer.h"

#include <inttypes.h>

#include "wire/json/json_document.h"

#define VERSION 1

void host_answer_clear(struct host_answer *answer) {
    host_place_clear(&answer->place);
    answer->term = 0;
}

void host_answer_write(const struct host_answer *answer, struct text *out) {
    text_append_format(out, "{\"muster_host\": %d, \"term\": %" PRId64, VERSION, answer->term);
    if (answer->place.names != NULL) {
        struct text place = {0};
        host_place_write(answer->place.port, answer->place.names, &place);
        text_append(out, ", \"place\": ");
        json_text_write(text_string(&place), out);
        text_clear(&place);
    }
    text_append(out, "}");
}

static enum failure_code read_place(const struct json_value *value, struct host_place *out_place) {
    const char *text = json_value_text(value);
    if (value == NULL) {
        *out_place = (struct host_place){0};
        return FAILURE_NONE;
    }
    return text == NULL ? FAILURE_MALFORMED : host_place_parse(text, out_place);
}

static enum failure_code read_answer(
    const struct json_value *root, struct host_answer *out_answer) {
    int64_t version;
    int64_t term;
    if (!json_value_integer(json_value_member(root, "muster_host"), &version)) {
        return FAILURE_MALFORMED;
    }
    if (version != VERSION) {
        return FAILURE_UNSUPPORTED;
    }
    if (!json_value_integer(json_value_member(root, "term"), &term) || term < 0) {
        return FAILURE_MALFORMED;
    }
    struct host_place place;
    enum failure_code code = read_place(json_value_member(root, "place"), &place);
    if (code == FAILURE_NONE) {
        *out_answer = (struct host_answer){term, place};
    }
    return code;
}

enum failure_code host_answer_read(struct slice text, struct host_answer *out_answer) {
    struct json_document *document;
    enum failure_code code = json_document_parse(text, HOST_ANSWER_MAXIMUM_SIZE, &document, NULL);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = read_answer(json_document_root(document), out_answer);
    json_document_free(document);
    return code;
}
