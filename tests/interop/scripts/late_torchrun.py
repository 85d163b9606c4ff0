# SPDX-License-Identifier: BSD-3-Clause
"""torchrun on a machine that is busy in one moment: after it has left a round, and before it joins the next."""

import time

from torch.distributed import run
from torch.distributed.elastic.rendezvous import dynamic_rendezvous

SECONDS = 5
Executor = dynamic_rendezvous._DistributedRendezvousOpExecutor
perform = Executor.run


def perform_late(self, operation, *arguments, **how):
    perform(self, operation, *arguments, **how)
    if isinstance(operation, dynamic_rendezvous._RendezvousExitOp):
        time.sleep(SECONDS)


Executor.run = perform_late
run.main()
