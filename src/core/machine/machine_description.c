/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/machine/machine_description.h"

#include <stdlib.h>

void machine_description_clear(struct machine_description *machine) {
    free(machine->cpus);
    free(machine->device_nodes);
    *machine = (struct machine_description){0};
}
