/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rendezvous/protocol_version.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"

/* A dot would end the name of the module. */
#define SENTENCE                                                                                   \
    "this job's nodes have to be Muster's (muster run): its store moves from node to node, which " \
    "torchrun cannot follow; nodes of torchrun's meet those of Muster's with --rdzv-backend c10d"
/* The opcode GLOBAL of protocol 0, and STOP. */
#define PICKLE "c" SENTENCE "\nmuster\n."
#define TEXT_MAXIMUM ((size_t)1024)

void torchrun_refusal_write_of_succession(struct text *out) {
    struct bytes value;
    bytes_init(&value, TEXT_MAXIMUM);
    (void)!base64_encode(slice_from_string(PICKLE), &value);
    text_append_format(out, "%.*s", (int)value.length, (const char *)value.data);
    bytes_clear(&value);
}

/* Protocol version. */

#define OWN_NUMBER 1

struct protocol_version protocol_version_own(void) {
    return (struct protocol_version){.number = OWN_NUMBER, .program = "muster " MUSTER_VERSION};
}

void protocol_version_write(const struct protocol_version *version, struct text *out) {
    text_append_format(out, "%" PRId64 " %s", version->number, version->program);
}

/* Returns how many digits the text begins with; 0 also where their number is too large. */
static size_t read_number(struct slice text, int64_t *out_number) {
    size_t count = 0;
    while (count < text.length && text_is_digit(text.data[count])) {
        *out_number = *out_number * 10 + (text.data[count++] - '0');
        if (*out_number > PROTOCOL_VERSION_MAXIMUM) {
            return 0;
        }
    }
    return count;
}

static bool is_program(struct slice text) {
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] < ' ' || text.data[i] > '~') {
            return false;
        }
    }
    return text.length > 0 && text.length < PROTOCOL_VERSION_PROGRAM_SIZE;
}

enum failure_code protocol_version_read(struct slice text, struct protocol_version *out_version) {
    struct protocol_version version = {0};
    size_t digits = read_number(text, &version.number);
    if (digits == 0 || text.data[0] == '0' || digits == text.length || text.data[digits] != ' ') {
        return FAILURE_MALFORMED;
    }
    struct slice program = slice_from(text, digits + 1);
    if (!is_program(program)) {
        return FAILURE_MALFORMED;
    }
    memcpy(version.program, program.data, program.length);
    *out_version = version;
    return FAILURE_NONE;
}

void protocol_version_describe(const struct protocol_version *version, struct text *out) {
    text_append_format(out, "%s, which speaks version %" PRId64 " of Muster's protocol",
        version->program, version->number);
}
