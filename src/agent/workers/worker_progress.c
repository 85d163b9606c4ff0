/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/worker_progress.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/standby/standby_preparation.h"
#include "host/loop/files.h"
#include "host/standby/hook_directory.h"
#include "wire/telling/progress_page.h"

#define FIRST_LOOK_MILLISECONDS 50
#define LOOK_MILLISECONDS 1000
/* A job that has taken no step for so long may never take one. */
#define EAGER_SECONDS 30
/* For a disk that may not answer. */
#define DISK_PATIENCE_SECONDS 5

struct page {
    int fd;          /* of a worker without a record; -1: none */
    uint64_t *words; /* in the mapped page; NULL: there is none */
};

struct worker_progress {
    struct worker_progress_settings settings;
    struct event_loop *loop;
    struct event_timer *timer;
    struct progress_watch *watch;
    struct page *pages;     /* by local rank */
    struct instant started; /* when the workers were */
    bool is_watching;
    struct progress_advance told;
    struct hook_directory hook;
};

static void unmap(struct page *page) {
    if (page->words != NULL) {
        munmap((char *)page->words - PROGRESS_PAGE_OFFSET, PROGRESS_PAGE_SIZE);
        page->words = NULL;
    }
}

static void close_own(struct page *page) {
    if (page->fd != -1) {
        close(page->fd);
        page->fd = -1;
    }
}

void worker_progress_dress(const struct worker_progress *progress, struct text_list *environment) {
    if (progress != NULL) {
        text_list_set_variable(environment, PROGRESS_VARIABLE, PROGRESS_DESCRIPTOR);
    }
    if (progress != NULL && progress->hook.path != NULL) {
        const struct standby_dress dress = {
            .role = STANDBY_ALONE, .hook_directory = progress->hook.path};
        standby_environment_dress(environment, &dress);
    }
}

int worker_progress_descriptor(struct worker_progress *progress, int local_rank, int record) {
    if (progress == NULL || record != -1) {
        return record;
    }
    struct page *page = &progress->pages[local_rank];
    close_own(page);
    if (memory_file_with_head("muster-progress", PROGRESS_PAGE_SIZE, &page->fd, NULL) !=
        FAILURE_NONE) {
        page->fd = -1;
    }
    return page->fd;
}

void worker_progress_note_worker(
    struct worker_progress *progress, int local_rank, pid_t pid, int record) {
    if (progress == NULL) {
        return;
    }
    struct page *page = &progress->pages[local_rank];
    int fd = record != -1 ? record : page->fd;
    unmap(page);
    void *start = fd == -1
                      ? MAP_FAILED
                      : mmap(NULL, PROGRESS_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (start != MAP_FAILED) {
        page->words = (uint64_t *)((char *)start + PROGRESS_PAGE_OFFSET);
        page->words[PROGRESS_WORD_AGENT] = (uint64_t)getpid();
        page->words[PROGRESS_WORD_WORKER] = (uint64_t)pid;
        __atomic_store_n(&page->words[PROGRESS_WORD_MARK], PROGRESS_PAGE_MAGIC, __ATOMIC_RELEASE);
    }
    close_own(page);
}

/* Looking. */

static void see(struct worker_progress *progress, int local_rank, struct instant now) {
    const struct page *page = &progress->pages[local_rank];
    uint64_t words[PROGRESS_PAGE_WORDS];
    struct progress_sample sample;
    for (int i = 0; i < PROGRESS_PAGE_WORDS; i++) {
        /* The count is written last, and read first. */
        int at = i == 0 ? PROGRESS_WORD_COUNT : i <= PROGRESS_WORD_COUNT ? i - 1 : i;
        words[at] = __atomic_load_n(&page->words[at], __ATOMIC_ACQUIRE);
    }
    if (progress_page_read(words, &sample)) {
        progress_watch_see(progress->watch, local_rank, &sample, now);
    }
}

static void tell_advance(struct worker_progress *progress) {
    struct progress_advance advance = progress_watch_advance(progress->watch);
    bool is_news = advance.has_stepped != progress->told.has_stepped ||
                   advance.is_new != progress->told.is_new;
    progress->told = advance;
    if (is_news && advance.has_stepped && progress->settings.stepped != NULL) {
        progress->settings.stepped(progress->settings.context, advance.is_new);
    }
}

static void look(struct worker_progress *progress, bool is_last) {
    struct instant now = event_loop_now(progress->loop);
    struct progress_news news[PROGRESS_NEWS_MAXIMUM];
    for (int rank = 0; rank < progress->settings.worker_count; rank++) {
        if (progress->pages[rank].words != NULL) {
            see(progress, rank, now);
        }
    }
    tell_advance(progress);
    size_t count = progress_watch_tell(progress->watch, now, is_last, news);
    for (size_t i = 0; i < count; i++) {
        progress->settings.tell(progress->settings.context, &news[i]);
    }
}

static void set_timer(struct worker_progress *progress) {
    struct instant now = event_loop_now(progress->loop);
    bool is_eager = !progress_watch_has_begun(progress->watch) &&
                    instant_is_before(now,
                        instant_after(progress->started, duration_from_seconds(EAGER_SECONDS)));
    event_timer_set(progress->timer,
        instant_after(now,
            duration_from_milliseconds(is_eager ? FIRST_LOOK_MILLISECONDS : LOOK_MILLISECONDS)));
}

static void judge(struct worker_progress *progress) {
    struct duration silence = {0};
    enum progress_standing standing =
        progress_watch_judge(progress->watch, event_loop_now(progress->loop), &silence);
    if (standing != PROGRESS_AS_BEFORE) {
        look(progress, true); /* so that it is known which steps were before, and after */
        progress->settings.stand(progress->settings.context, silence);
    }
}

static void is_time(void *context) {
    struct worker_progress *progress = context;
    look(progress, false);
    judge(progress);
    set_timer(progress);
}

void worker_progress_look(struct worker_progress *progress) {
    if (progress != NULL && progress->is_watching) {
        look(progress, false);
    }
}

void worker_progress_step(
    struct worker_progress *progress, enum agent_phase before, enum agent_phase now) {
    if (progress == NULL) {
        return;
    }
    if (before == AGENT_STARTING && now == AGENT_RUNNING) {
        progress->is_watching = true;
        progress->told = (struct progress_advance){0};
        progress->started = event_loop_now(progress->loop);
        progress_watch_begin(
            progress->watch, progress->started, progress->settings.placement->ranks.base_rank == 0);
        set_timer(progress);
    } else if (progress->is_watching && now != AGENT_RUNNING && now != AGENT_DOUBTING) {
        progress->is_watching = false;
        event_timer_stop(progress->timer);
        look(progress, true);
    }
}

int64_t worker_progress_last(const struct worker_progress *progress) {
    return progress == NULL ? -1 : progress_watch_step(progress->watch);
}

static void open_hook(struct worker_progress *progress) {
    struct failure failure = {0};
    if (hook_directory_open_within(duration_from_seconds(DISK_PATIENCE_SECONDS), "/proc/self/exe",
            temporary_directory_candidate(NULL, 0), &progress->hook, &failure) != FAILURE_NONE) {
        log_warning(progress->settings.log,
            "--progress auto: the steps of optimizers are not counted: %s", failure.message);
    } else if (progress->hook.is_private) {
        guardian_remove_at_end(
            progress->settings.guardian, GUARDIAN_REMAINS_TREE, progress->hook.path);
    }
}

struct worker_progress *worker_progress_new(
    struct event_loop *loop, const struct worker_progress_settings *settings) {
    struct worker_progress *progress = memory_allocate(sizeof *progress);
    *progress = (struct worker_progress){.settings = *settings, .loop = loop};
    progress->pages = memory_allocate((size_t)settings->worker_count * sizeof *progress->pages);
    for (int rank = 0; rank < settings->worker_count; rank++) {
        progress->pages[rank].fd = -1;
    }
    progress->watch = progress_watch_new(settings->worker_count, settings->patience);
    progress->timer = event_timer_new(loop, is_time, progress);
    if (settings->has_hook) {
        open_hook(progress);
    }
    return progress;
}

void worker_progress_free(struct worker_progress *progress) {
    if (progress == NULL) {
        return;
    }
    for (int rank = 0; rank < progress->settings.worker_count; rank++) {
        unmap(&progress->pages[rank]);
        close_own(&progress->pages[rank]);
    }
    hook_directory_close_within(duration_from_seconds(DISK_PATIENCE_SECONDS), &progress->hook);
    event_timer_free(progress->timer);
    progress_watch_free(progress->watch);
    free(progress->pages);
    free(progress);
}
