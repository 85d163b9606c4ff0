/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rendezvous/torchrun_refusal.h"

#include "base/bytes.h"
#include "wire/rendezvous/base64.h"

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
