/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/device_question.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/machine/cpu_plan.h"
#include "host/process/process_spawn.h"

/* torch is a large import, and may come from a slow disk. */
#define ANSWER_SECONDS 120
/* The thread is waited for a little longer, so that it has ended the process. */
#define PATIENCE_SECONDS (ANSWER_SECONDS + 10)
#define ANSWER_CEILING ((size_t)4096)

/* A plug-in is imported with torch. It names its device, or makes it PyTorch's accelerator. */
static char script[] =
    "import sys\n"
    "sys.path[:] = [place for place in sys.path if place]\n"
    "name = sys.argv[1]\n"
    "def has_plug_in():\n"
    "    from importlib.metadata import entry_points\n"
    "    found = entry_points()\n"
    "    group = 'torch.backends'\n"
    "    return bool(found.select(group=group) if hasattr(found, 'select') else found.get(group))\n"
    "def count():\n"
    "    if name == 'auto' and not has_plug_in():\n"
    "        return 0\n"
    "    import torch\n"
    "    accelerator = getattr(torch, 'accelerator', None)\n"
    "    if accelerator is not None and accelerator.is_available():\n"
    "        if name in ('auto', accelerator.current_accelerator().type):\n"
    "            return accelerator.device_count()\n"
    "    module = getattr(torch, name, None)\n"
    "    if hasattr(module, 'is_available') and hasattr(module, 'device_count'):\n"
    "        return module.device_count() if module.is_available() else 0\n"
    "    if name == 'auto':\n"
    "        return 0\n"
    "    raise LookupError('its PyTorch knows no device of this name')\n"
    "try:\n"
    "    answer = int(count())\n"
    "except LookupError as error:\n"
    "    answer = '?' + str(error.args[0] if error.args else error)\n"
    "except ModuleNotFoundError as error:\n"
    "    answer = ('?' if error.name == 'torch' else '!') + type(error).__name__ + ': ' + "
    "str(error)\n"
    "except Exception as error:\n"
    "    answer = '!' + type(error).__name__ + ': ' + str(error)\n"
    "print('\\nmuster-devices', ' '.join(str(answer).split())[:1000], flush=True)\n";

struct question {
    struct text_list arguments;
    struct text_list environment;
    enum failure_code code;
    struct failure failure;
    struct process_answer answer;
};

static void free_question(void *subject) {
    struct question *question = subject;
    text_list_clear(&question->arguments);
    text_list_clear(&question->environment);
    text_clear(&question->answer.said);
    free(question);
}

/* On a thread, which is there until the process has ended. */
static void run_question(void *subject) {
    struct question *question = subject;
    question->code = process_ask(&question->arguments, &question->environment,
        duration_from_seconds(ANSWER_SECONDS), ANSWER_CEILING, false, &question->answer,
        &question->failure);
}

static enum failure_code judge(
    struct question *question, const char *python, int *out_count, struct failure *failure) {
    if (question->code != FAILURE_NONE) {
        return failure_set(failure, question->code, "%s", question->failure.message);
    }
    if (question->answer.is_late) {
        return failure_set(
            failure, FAILURE_TIMEOUT, "%s has not answered within %d s", python, ANSWER_SECONDS);
    }
    char *text = text_take(&question->answer.said);
    const char *reason = NULL;
    enum failure_code code = FAILURE_NONE;
    switch (device_answer_read(text, out_count, &reason)) {
    case DEVICE_ANSWER_COUNT:
        break;
    case DEVICE_ANSWER_UNKNOWN:
        code = failure_set(failure, FAILURE_MISSING, "%s says: %s", python, reason);
        break;
    case DEVICE_ANSWER_TROUBLE:
        code = failure_set(failure, FAILURE_INVALID, "%s says: %s", python, reason);
        break;
    case DEVICE_ANSWER_NONE:
        code =
            failure_set(failure, FAILURE_INVALID, "%s was asked and has given no number", python);
        break;
    }
    free(text);
    return code;
}

enum failure_code device_question_ask(const char *python, const char *name,
    const struct text_list *environment, const struct blocking_watch *watch, int *out_count,
    struct failure *failure) {
    struct question *question = memory_allocate(sizeof *question);
    const char *const words[] = {python, "-c", script, name};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        text_list_add(&question->arguments, words[i]);
    }
    for (size_t i = 0; i < environment->count; i++) {
        text_list_add(&question->environment, environment->items[i]);
    }
    const struct blocking_task task = {run_question, free_question, question};
    enum failure_code code =
        blocking_task_run_within(&task, duration_from_seconds(PATIENCE_SECONDS), watch, failure);
    if (code == FAILURE_NONE) {
        code = judge(question, python, out_count, failure);
        free_question(question);
    }
    return code;
}
