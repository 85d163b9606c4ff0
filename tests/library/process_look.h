/* SPDX-License-Identifier: BSD-3-Clause */
/* What this process has of the system: for tests of what is left behind. */
#ifndef MUSTER_TESTS_LIBRARY_PROCESS_LOOK_H
#define MUSTER_TESTS_LIBRARY_PROCESS_LOOK_H

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PROCESS_IS_SANITIZED true
#elif defined(__has_feature)
#define PROCESS_IS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define PROCESS_IS_SANITIZED false
#endif

/* A sanitizer, or valgrind, gives this process its memory, and cannot go on without. */
static inline bool process_has_memory_of_others(void) {
    const char *preloaded = getenv("LD_PRELOAD");
    return PROCESS_IS_SANITIZED || (preloaded != NULL && strstr(preloaded, "vgpreload") != NULL);
}

static inline size_t process_descriptors(void) {
    DIR *directory = opendir("/proc/self/fd");
    size_t count = 0;
    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static inline long process_resident_bytes(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* How often a test of what is left behind does its thing: $MUSTER_TEST_CYCLES, or `usual`. */
static inline int process_cycles(int usual) {
    const char *wanted = getenv("MUSTER_TEST_CYCLES");
    int cycles = wanted != NULL ? atoi(wanted) : usual;
    assert_true(cycles > 0);
    return cycles;
}

#define SKIP_WHERE_MEMORY_IS_ANOTHERS                                                              \
    do {                                                                                           \
        if (process_has_memory_of_others()) {                                                      \
            SKIP_BECAUSE("a sanitizer or valgrind has the memory");                                \
        }                                                                                          \
    } while (false)

#endif
