/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/machine/cpu_plan.h"

TEST(cleared_machine_is_empty_and_can_be_cleared_again) {
    CLEARED_BY(machine_description_clear)
    struct machine_description machine = {
        .cpus = memory_allocate(2 * sizeof(struct machine_cpu)),
        .cpu_count = 2,
        .device_nodes = memory_allocate(sizeof(int)),
        .device_count = 1,
    };
    machine_description_clear(&machine);
    assert_null(machine.cpus);
    assert_int_equal(machine.cpu_count, 0);
    assert_null(machine.device_nodes);
    assert_int_equal(machine.device_count, 0);
}
