/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as what an agent announces of its job. What is accepted keeps its limits,
 * can be shown as it is, and survives being written and read again. */
#include <string.h>

#include "base/utf8.h"
#include "fuzz_input.h"
#include "wire/telling/job_announcement.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct job_announcement job;
    struct job_announcement again;
    struct text text = {0};
    if (job_announcement_read((struct slice){data, size}, &job) != FAILURE_NONE) {
        return 0;
    }
    FUZZ_REQUIRE(strlen(job.run_id) <= JOB_ANNOUNCEMENT_RUN_ID_MAXIMUM);
    FUZZ_REQUIRE(job.host == NULL || strlen(job.host) <= JOB_ANNOUNCEMENT_HOST_MAXIMUM);
    FUZZ_REQUIRE(strpbrk(job.run_id, "\x1b\n\t") == NULL);
    FUZZ_REQUIRE(job.host == NULL || strpbrk(job.host, " '\"$;-") != job.host);
    job_announcement_write(&job, &text);
    FUZZ_REQUIRE(text.length <= JOB_ANNOUNCEMENT_MAXIMUM);
    FUZZ_REQUIRE(
        job_announcement_read(slice_from_string(text_string(&text)), &again) == FAILURE_NONE);
    FUZZ_REQUIRE(again.port == job.port && again.pid == job.pid);
    FUZZ_REQUIRE(strcmp(again.run_id, job.run_id) == 0);
    FUZZ_REQUIRE((again.host == NULL) == (job.host == NULL));
    FUZZ_REQUIRE(job.host == NULL || strcmp(again.host, job.host) == 0);
    job_announcement_clear(&job);
    job_announcement_clear(&again);
    text_clear(&text);
    return 0;
}
