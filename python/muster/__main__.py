# SPDX-License-Identifier: BSD-3-Clause
"""`python -m muster ARGUMENT...` is `muster ARGUMENT...`."""

import os
import sys

from muster import PROGRAM, environment

os.execve(PROGRAM, ["muster", *sys.argv[1:]], environment())
