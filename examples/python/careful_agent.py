# SPDX-License-Identifier: BSD-3-Clause
"""SimpleElasticAgent, extended: a check before each restart, and who the workers are (WorkerGroup, Worker).
The methods are called in the agent's process.    python3 careful_agent.py"""

import os
import sys

from muster.agent import LocalElasticAgent, WorkerSpec


class Careful(LocalElasticAgent):
    def _start_workers(self, worker_group):
        ranks = [worker.global_rank for worker in worker_group.workers]
        print(f"starting ranks {ranks} of node {worker_group.group_rank}", flush=True)
        return super()._start_workers(worker_group)

    def _restart_workers(self, worker_group):
        print(f"checking the GPUs before restart {worker_group.restarts}", flush=True)
        super()._restart_workers(worker_group)


def work():
    sys.exit(3 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else 0)


if __name__ == "__main__":
    agent = Careful(WorkerSpec("trainer", 2, entrypoint=work, max_restarts=1), start_method="fork")
    result = agent.run()
    print(result.state.value, "after", agent.get_worker_group().restarts, "restart")
