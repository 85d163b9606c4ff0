/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of muster/progress.h. */
#include "unit.h"

#include <muster/progress.h>

#include "library/bad_input.h"
