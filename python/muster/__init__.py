# SPDX-License-Identifier: BSD-3-Clause
"""Muster, a launcher for distributed training jobs. The launcher is the program `muster`; this package only calls it:
`python -m muster run ...`, and `muster.run` for programs that start jobs in process."""

import os
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.realpath(__file__)), "bin", "muster")


def environment():
    """This process's, in which scripts run under this interpreter unless another one is named, as with torchrun."""
    return {"PYTHON_EXEC": sys.executable, **os.environ}
