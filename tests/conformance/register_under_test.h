/* SPDX-License-Identifier: BSD-3-Clause */
/* The register that register_conformance asks, and the nodes that share it. */
#ifndef MUSTER_TESTS_CONFORMANCE_REGISTER_UNDER_TEST_H
#define MUSTER_TESTS_CONFORMANCE_REGISTER_UNDER_TEST_H

#include "unit.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "host/loop/clock.h"
#include "host/loop/event_loop.h"
#include "host/register/register.h"

struct register_under_test {
    struct event_loop *loop;
    const struct register_engine *engine;
    char *endpoint;
    struct text_list conf;
    bool is_temporary;
};

/* Faults between a register and its engine. */
struct faults {
    unsigned lost_replies_in_ten; /* appends whose result is lost after it was reached */
    bool is_silent;               /* requests reach the engine; nothing comes back */
};

struct answer {
    bool is_there;
    enum register_event_kind kind;
    bool has_entry;
    struct register_entry entry;
    struct text renewal;
    struct failure failure;
    bool is_final;
};

struct race;

struct racer {
    int index;
    struct register_under_test *under_test;
    struct job_register *job_register;
    struct faults faults;
    struct random random;
    int64_t deadline_milliseconds; /* 0: far away */
    void (*told)(void *context, const struct register_event *event);
    struct race *race;
    struct answer answer; /* without `told` */
};

void register_under_test_choose(int argument_count, char **arguments);
int register_under_test_set_up(void **state);
int register_under_test_tear_down(void **state);

/* The same engine where nothing answers: no directory, or nobody at the port. */
struct register_under_test *register_under_test_gone(void);

/* The caller frees it. */
char *unused_run_id(void);
struct instant far(const struct register_under_test *under_test);

/* With `told`, it is called with the racer; otherwise the functions below wait for answers. */
struct racer *racers_new(struct register_under_test *under_test, const char *run_id, int count,
    void (*told)(void *context, const struct register_event *event));
void racers_free(struct racer *racers, int count);

struct answer read_last(struct register_under_test *under_test, struct racer *racer);
struct answer append(struct register_under_test *under_test, struct racer *racer,
    const struct register_entry *entry);
struct answer renew(struct register_under_test *under_test, struct racer *racer, int64_t term);
struct answer renewal(struct register_under_test *under_test, struct racer *racer, int64_t term);
/* Begins a watch; `told` or news come later. 0: the engine cannot watch. */
uint64_t watch(struct racer *racer, int64_t number);
struct answer news(struct register_under_test *under_test, struct racer *racer);
void answer_clear(struct answer *answer);

#endif
