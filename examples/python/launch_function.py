# SPDX-License-Identifier: BSD-3-Clause
"""A function as the workers of a job: LaunchConfig, elastic_launch and ChildFailedError, with a LogsSpecs and a handler of events of
the program's own.    python3 launch_function.py DIRECTORY"""

import json
import os
import sys

from muster.launcher import ChildFailedError, LaunchConfig, LogsDest, LogsSpecs, elastic_launch
from muster.run import register_event_handler


class OneFilePerRank(LogsSpecs):
    def reify(self, envs):
        return LogsDest(stdouts={rank: f"{self.log_dir}/rank{env['RANK']}.txt" for rank, env in envs.items()})


def train(lines):
    print(f"I got {lines} lines\n", end="", flush=True)
    if lines < 0:
        raise ValueError("there are no lines")
    return lines * int(os.environ["RANK"])


def show(text):
    event = json.loads(text)
    if event.get("source") == "WORKER" and event["metadata"]["state"] == "START":
        print("started", flush=True)


def main(directory):
    register_event_handler("show", show)
    config = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, max_restarts=0, logs_specs=OneFilePerRank(log_dir=directory),
                          event_log_handler="show")
    print(elastic_launch(config, train)(21))
    try:
        elastic_launch(config, train)(-1)
    except ChildFailedError as failed:
        _, first = failed.get_first_failure()
        print(first.error_file_data["message"]["message"])


if __name__ == "__main__":
    main(sys.argv[1])
