/* SPDX-License-Identifier: BSD-3-Clause */
/* Two workers write arbitrary bytes into their pages, look after look. What is told of them has
 * numbers and times that can be, is never more than there is room for, and folds into a status. */
#include <string.h>

#include "core/telling/chronicle_status.h"
#include "fuzz_input.h"
#include "wire/telling/progress_page.h"

#define WORKERS 2

static void check(const struct progress_news *news, struct instant began, struct instant now) {
    FUZZ_REQUIRE(news->step >= 0 && news->step <= PROGRESS_STEP_MAXIMUM);
    FUZZ_REQUIRE(!instant_is_before(news->at, began) && !instant_is_before(now, news->at));
    FUZZ_REQUIRE(news->local_rank >= 0 && news->local_rank < WORKERS);
    FUZZ_REQUIRE(news->source < PROGRESS_SOURCE_COUNT);
    FUZZ_REQUIRE(!(news->rate > 1e18)); /* a step a nanosecond is the most */
}

static void check_standing(struct progress_watch *watch, struct instant now) {
    struct duration silence = {0};
    enum progress_standing standing = progress_watch_judge(watch, now, &silence);
    FUZZ_REQUIRE((standing == PROGRESS_STANDS_STILL) ==
                 (duration_seconds(silence) >= PROGRESS_PATIENCE_SECONDS));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct instant began = {1000};
    struct instant now = began;
    const struct progress_patience patience = {.is_learned = true};
    struct progress_watch *watch = progress_watch_new(WORKERS, patience);
    uint64_t words[PROGRESS_PAGE_WORDS];
    progress_watch_begin(watch, began, size % 2 == 0);
    for (int look = 0; size >= sizeof words; look++) {
        struct progress_sample sample;
        struct progress_news news[PROGRESS_NEWS_MAXIMUM];
        memcpy(words, data, sizeof words);
        data += sizeof words;
        size -= sizeof words;
        now = instant_after(now, duration_from_seconds(look % 12));
        if (progress_page_read(words, &sample)) {
            progress_watch_see(watch, look % WORKERS, &sample, now);
        }
        size_t count = progress_watch_tell(watch, now, size < sizeof words, news);
        FUZZ_REQUIRE(count <= PROGRESS_NEWS_MAXIMUM);
        for (size_t i = 0; i < count; i++) {
            check(&news[i], began, now);
        }
        check_standing(watch, now);
    }
    progress_watch_free(watch);
    return 0;
}
