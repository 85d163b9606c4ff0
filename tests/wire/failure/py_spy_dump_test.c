/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdlib.h>

#include "wire/failure/python_stack.h"

#define HEADING "Process 4711: python3 train.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n"

static void expect(const char *dump, const char *place) {
    FREED char *found = py_spy_dump_place(slice_from_string(dump), 4711);
    if (place == NULL) {
        assert_null(found);
    } else {
        assert_non_null(found);
        assert_string_equal(found, place);
    }
}

TEST(the_innermost_frame_of_the_main_thread_is_found) {
    expect(HEADING "Thread 4712 (active): \"loader\"\n    get (queue.py:180)\n"
                   "Thread 4711 (idle): \"MainThread\"\n    step (train.py:17)\n"
                   "    <module> (train.py:30)\n",
        "train.py:17 in step");
    expect(HEADING "Thread 4711 (active+gil)\n    <lambda> (my file (1).py:3)\n",
        "my file (1).py:3 in <lambda>");
    expect(HEADING "Thread 0x7F00 (idle): \"MainThread\"\n    poll (select.py)\n",
        "select.py in poll");
}

TEST(a_dump_without_it_has_no_place) {
    expect("", NULL);
    expect("Error: Failed to suspend process\n", NULL);
    expect(HEADING "Thread 4711 (idle): \"MainThread\"\n", NULL);
    expect(HEADING "Thread 4711 (idle): \"MainThread\"\nThread 1 (idle)\n    f (a.py:1)\n", NULL);
    expect(HEADING "Thread 47 (idle)\n    f (a.py:1)\n", NULL);
    expect(HEADING "Thread 4711 (idle)\n    no frame\n", NULL);
    expect(HEADING "Thread 4711 (idle)\n     (a.py:1)\n", NULL);
    expect(HEADING "Thread 4711 (idle)\n    f ()\n", NULL);
    expect(HEADING "Thread 4711 (idle)\n    )\n", NULL);
}
