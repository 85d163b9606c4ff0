/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_key.h"

static void check(struct text *key, const char *expected) {
    assert_string_equal(text_string(key), expected);
    text_clear(key);
}

TEST(the_record_and_the_rounds_lie_where_torchrun_puts_them) {
    struct text key = {0};
    rendezvous_key_write_record("job2", &key);
    check(&key, "/torch.rendezvous.job2");
    rendezvous_key_write_round("job2", 0, &key);
    check(&key, "/torch.rendezvous.job2.0/");
    rendezvous_key_write_round("job2", 12, &key);
    check(&key, "/torch.rendezvous.job2.12/");
}

TEST(musters_own_keys_are_in_folders_of_its_own) {
    struct text key = {0};
    rendezvous_key_write_changes("job", &key);
    check(&key, "/torch.rendezvous.job/muster/changes");
    rendezvous_key_write_changed("job", 7, &key);
    check(&key, "/torch.rendezvous.job/muster/changed/7");
    rendezvous_key_write_protocol("job", &key);
    check(&key, "/torch.rendezvous.job/muster/protocol");
    rendezvous_key_write_settings("job", &key);
    check(&key, "/torch.rendezvous.job/muster/settings");
    rendezvous_key_write_program("job", &key);
    check(&key, "/torch.rendezvous.job/muster/program");
    rendezvous_key_write_said("job", &key);
    check(&key, "/torch.rendezvous.job/muster/said");
    rendezvous_key_write_admission("job", &key);
    check(&key, "/torch.rendezvous.job/muster/admission");
    rendezvous_key_write_host("job", &key);
    check(&key, "/torch.rendezvous.job/muster/host");
    rendezvous_key_write_learned_list("job", &key);
    check(&key, "/torch.rendezvous.job/muster/standby");
    rendezvous_key_write_presences("job", &key);
    check(&key, "/torch.rendezvous.job/muster/presence/");
    rendezvous_key_write_presence_served("job", &key);
    check(&key, "/torch.rendezvous.job/muster/presence/served");
    rendezvous_key_write_refused("job", 7, &key);
    check(&key, "/torch.rendezvous.job/muster/presence/refused/7");
    rendezvous_key_write_delegation("job", &key);
    check(&key, "/torch.rendezvous.job/muster/delegation");
    rendezvous_key_write_waiting(&key);
    check(&key, "/torch.rendezvous/muster/waiting");
    rendezvous_key_write_root_cause("job", 3, &key);
    check(&key, "/torch.rendezvous.job.3/muster/root_cause");
    rendezvous_key_write_roll("job", 3, 12, &key);
    check(&key, "/torch.rendezvous.job.3/muster/roll/12");
}

TEST(a_nodes_presence_is_named_by_its_identity) {
    struct text key = {0};
    struct node_identity identity = {.address = "node7", .pid = 42, .local_id = 1073741824};
    rendezvous_key_write_presence("job", &identity, &key);
    check(&key, "/torch.rendezvous.job/muster/presence/node7_42_1073741824");
    rendezvous_key_write_standing("job", &identity, &key);
    check(&key, "/torch.rendezvous.job/muster/standing/node7_42_1073741824");
}

TEST(a_run_id_is_any_text) {
    struct text key = {0};
    rendezvous_key_write_round("a/b %s\n", 1, &key);
    check(&key, "/torch.rendezvous.a/b %s\n.1/");
    rendezvous_key_write_changes("", &key);
    check(&key, "/torch.rendezvous./muster/changes");
}
