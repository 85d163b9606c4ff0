/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_key.h"

#include <inttypes.h>

void rendezvous_key_write_record(const char *run_id, struct text *out) {
    text_append(out, "/torch.rendezvous.");
    text_append(out, run_id);
}

void rendezvous_key_write_round(const char *run_id, int64_t round, struct text *out) {
    rendezvous_key_write_record(run_id, out);
    text_append_format(out, ".%" PRId64 "/", round);
}

static void write_own(const char *run_id, const char *name, struct text *out) {
    rendezvous_key_write_record(run_id, out);
    text_append(out, "/muster/");
    text_append(out, name);
}

void rendezvous_key_write_changes(const char *run_id, struct text *out) {
    write_own(run_id, "changes", out);
}

void rendezvous_key_write_changed(const char *run_id, int64_t number, struct text *out) {
    write_own(run_id, "changed/", out);
    text_append_format(out, "%" PRId64, number);
}

void rendezvous_key_write_protocol(const char *run_id, struct text *out) {
    write_own(run_id, "protocol", out);
}

void rendezvous_key_write_settings(const char *run_id, struct text *out) {
    write_own(run_id, "settings", out);
}

void rendezvous_key_write_said(const char *run_id, struct text *out) {
    write_own(run_id, "said", out);
}

void rendezvous_key_write_program(const char *run_id, struct text *out) {
    write_own(run_id, "program", out);
}

void rendezvous_key_write_admission(const char *run_id, struct text *out) {
    write_own(run_id, "admission", out);
}

void rendezvous_key_write_host(const char *run_id, struct text *out) {
    write_own(run_id, "host", out);
}

void rendezvous_key_write_telling(const char *run_id, struct text *out) {
    write_own(run_id, "telling/", out);
}

void rendezvous_key_write_learned_list(const char *run_id, struct text *out) {
    write_own(run_id, "standby", out);
}

void rendezvous_key_write_waiting(struct text *out) {
    text_append(out, "/torch.rendezvous/muster/waiting");
}

void rendezvous_key_write_presences(const char *run_id, struct text *out) {
    write_own(run_id, "presence/", out);
}

void rendezvous_key_write_presence_served(const char *run_id, struct text *out) {
    write_own(run_id, "presence/served", out);
}

void rendezvous_key_write_presence(
    const char *run_id, const struct node_identity *identity, struct text *out) {
    rendezvous_key_write_presences(run_id, out);
    node_identity_write(identity, out);
}

void rendezvous_key_write_refused(const char *run_id, uint32_t number, struct text *out) {
    rendezvous_key_write_presences(run_id, out);
    text_append_format(out, RENDEZVOUS_KEY_REFUSED "%" PRIu32, number);
}

void rendezvous_key_write_delegation(const char *run_id, struct text *out) {
    write_own(run_id, "delegation", out);
}

void rendezvous_key_write_standing(
    const char *run_id, const struct node_identity *identity, struct text *out) {
    write_own(run_id, "standing/", out);
    node_identity_write(identity, out);
}

void rendezvous_key_write_root_cause(const char *run_id, int64_t round, struct text *out) {
    rendezvous_key_write_round(run_id, round, out);
    text_append(out, "muster/root_cause");
}

void rendezvous_key_write_roll(const char *run_id, int64_t round, int rank, struct text *out) {
    rendezvous_key_write_round(run_id, round, out);
    text_append_format(out, "muster/roll/%d", rank);
}
