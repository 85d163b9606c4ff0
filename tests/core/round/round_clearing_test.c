/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>

#include "round_fixture.h"

/* Lets a node join a round in which it is alone. */
static void join_alone(struct scene *scene, int64_t round, const char *then) {
    char joined[200];
    char asked[200];
    snprintf(asked, sizeof asked,
        "arm_timer at=600.000; set_role_info %d/role_info/0; "
        "set_assignments %d/assigned_ranks/0 of 1; open_worker_store fresh",
        (int)round, (int)round);
    begin(scene, round, "a", 'a', asked);
    snprintf(joined, sizeof joined,
        "publish %d/publication a:1 of " A "; disarm_timer; "
        "joined %d rank=0 of 1 [0, 4, 0, 4] a:1 restarts=2%s",
        (int)round, (int)round, then);
    step(scene, opened(scene, "a", 1), joined);
}

TEST(what_earlier_rounds_left_is_cleared_away_once) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 4);
    join_alone(&scene, 0, "");
    join_alone(&scene, 1, "");
    join_alone(&scene, 2, "; clear 0 to 0 of 1");
    join_alone(&scene, 3, "; clear 1 to 1 of 1");
    join_alone(&scene, 6, "; clear 2 to 4 of 1");
    join_alone(&scene, 1000, "; clear 995 to 998 of 1");
}

/* The nodes of such rounds have written nothing. */
TEST(what_ranked_rounds_left_is_little) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    const struct rank_assignment ranks = {0, 2, 0, 2};
    scene.delegates = true;
    for (int64_t round = 0; round < 8; round++) {
        static const char *const cleared[] = {"", "", "; clear 0 to 0 of 1", "; clear 1 to 1 of 1",
            "", /* round 4 is not ranked, and is given up */
            "; clear 2 to 3 of 2", "; clear 4 to 4 of 2", "; clear 5 to 5 of 1"};
        CLEARED_BY(text_clear) struct text expected = {0};
        text_append_format(&expected,
            "publish %lld/publication a:2 of " A
            "; opened a:2; disarm_timer; joined %lld rank=0 of 2 [0, 2, 0, 2] a:2 restarts=2%s",
            (long long)round, (long long)round, cleared[round]);
        if (round == 4) {
            scene.ranks = (struct rank_assignment){0};
            begin(&scene, 4, "ab", 'a',
                "arm_timer at=600.000; set_role_info 4/role_info/0; open_worker_store fresh; "
                "wait 4/role_infos/2");
        } else {
            scene.ranks = ranks;
            begin(&scene, round, "ab", 'a',
                round == 5 ? "cancel_wait; disarm_timer; arm_timer at=600.000; "
                             "open_worker_store fresh"
                           : "arm_timer at=600.000; open_worker_store fresh");
            step(&scene, opened(&scene, "a", 2), text_string(&expected));
        }
    }
    scene.had_roll = true;
    begin(&scene, 8, "ab", 'a', "arm_timer at=600.000; open_worker_store fresh");
    step(&scene, opened(&scene, "a", 2),
        "publish 8/publication a:2 of " A "; opened a:2; disarm_timer; "
        "joined 8 rank=0 of 2 [0, 2, 0, 2] a:2 restarts=2; clear 6 to 6 of 2");
}
