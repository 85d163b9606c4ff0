/* SPDX-License-Identifier: BSD-3-Clause */
/* Every option of `muster run` and `torchrun`: those of torch/distributed/run.py get_args_parser
 * (PyTorch 2.14) in its order and spelling, and Muster's own `--on-node-loss`, `--scale-up`,
 * `--exit-code` and `--version`. */
#ifndef MUSTER_OPTIONS_LAUNCH_LAUNCH_TABLE_H
#define MUSTER_OPTIONS_LAUNCH_LAUNCH_TABLE_H

#include "options/argparse/option_table.h"

extern const struct option_table launch_table;

#endif
