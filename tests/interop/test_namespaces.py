# SPDX-License-Identifier: BSD-3-Clause
"""A namespace of PyTorch's own parser, turned into arguments, is the same namespace when that parser reads them again."""

import json
import subprocess

from support.binary import clean_environment
from support.python_package import install_package

COMMAND_LINES = [
    ["train.py"],
    ["--nnodes=2:4", "--nproc-per-node=8", "--rdzv-backend=c10d", "--rdzv-endpoint=host:29400", "--rdzv-id=a b",
     "--rdzv-conf=join_timeout=60,is_host=1", "train.py", "--lr", "-1", "--", "", "a b"],
    ["--standalone", "--run-path", "--virtual-local-rank", "train.py"],
    ["-m", "package.module", "-m", "--nproc-per-node", "2"],
    ["--no-python", "/bin/sh", "-c", "echo $RANK"],
    ["--node-rank=1", "--master-addr=::1", "--master-port=0", "--local-addr=192.0.2.1", "train.py"],
    ["--max-restarts=3", "--monitor-interval=2.5", "--start-method=fork", "--event-log-handler=console", "--role=trainer",
     "train.py"],
    ["--log-dir=/logs", "-r", "0:1,1:2", "-t", "3", "--log-line-prefix-template=[${rank}] ", "--local-ranks-filter=0,1",
     "--duplicate-stdout-filters=one,two,,three", "--duplicate-stderr-filters=x", "train.py"],
    ["--logs-specs=default", "--numa-binding=node", "--signals-to-handle=SIGTERM,SIGUSR2", "--shutdown-timeout=7", "train.py"],
]

READ_TWICE = """\
import json, sys
import torch.distributed.run as torchrun
from muster.namespace import arguments_of
for words in json.load(sys.stdin):
    first = torchrun.get_args_parser().parse_args(words)
    second = torchrun.get_args_parser().parse_args(arguments_of(first))
    print(json.dumps([vars(first), vars(second)]))
"""

EVERY_FIELD = """\
import json
import torch.distributed.run as torchrun
from muster import namespace
fields = set(vars(torchrun.get_args_parser().parse_args(["train.py"])))
fields -= {"print_completion", "training_script", "training_script_args"}
print(json.dumps(sorted(fields ^ {*namespace.FLAGS, *namespace.TEXTS, *namespace.LISTS})))
"""


def ask_torch(peer, binary, scratch, program, text=""):
    site = install_package(scratch, binary)
    result = subprocess.run([peer.python, "-c", program], input=text, capture_output=True, text=True, timeout=100,
                            cwd=scratch, env=clean_environment(PYTHONPATH=site))
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_reading_the_arguments_of_a_namespace_gives_it_again(peer, binary, scratch):
    pairs = ask_torch(peer, binary, scratch, READ_TWICE, json.dumps(COMMAND_LINES))
    assert len(pairs) == len(COMMAND_LINES)
    for first, second in pairs:
        assert first == second


def test_every_field_of_this_version_is_known(peer, binary, scratch):
    assert ask_torch(peer, binary, scratch, EVERY_FIELD) == [[]]
