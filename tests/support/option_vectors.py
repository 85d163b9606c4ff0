# SPDX-License-Identifier: BSD-3-Clause
"""Command lines for comparing option parsers: the telling ones by hand, the rest drawn by seed.

A program too: with a Python 3.14 or newer it writes tests/command/data/option_vectors.json anew:

    python3.14 tests/support/option_vectors.py > tests/command/data/option_vectors.json
"""

import json
import random

SEED = 20261120
DRAWN_LINES = 500
DRAWN_POSITIONALS = 200

# What every torchrun user meets sooner or later, and the corners of argparse.
CHOSEN = [
    [],
    ["train.py"],
    ["--nproc", "2", "train.py"],
    ["--nproc-per", "2", "train.py"],
    ["--nproc_per", "2", "train.py"],
    ["--nn", "2", "train.py"],
    ["--stand", "train.py"],
    ["--t", "3", "train.py"],
    ["--e", "null", "train.py"],
    ["--vi", "train.py"],
    ["--v", "train.py"],
    ["--tok", "file", "train.py"],
    ["--ev", "null", "train.py"],
    ["--exit", "worker", "train.py"],
    ["--red", "3", "train.py"],
    ["--nproc-per-node=4", "--nnodes=1:2", "train.py", "--nproc-per-node", "8"],
    ["--nnodes=", "train.py"],
    ["--nnodes", "", "train.py"],
    ["-r3", "train.py"],
    ["-r", "3", "train.py"],
    ["-r=3", "train.py"],
    ["-r", "-1", "train.py"],
    ["-mt3", "pkg.train"],
    ["-mt=3", "pkg.train"],
    ["-mt", "3", "pkg.train"],
    ["-mt", "pkg.train"],
    ["-mx", "pkg.train"],
    ["-m-", "pkg.train"],
    ["-m=", "pkg.train"],
    ["-m=1", "pkg.train"],
    ["-mm", "pkg.train"],
    ["-mh"],
    ["-ht"],
    ["-h", "--nope"],
    ["--help=x"],
    ["--he"],
    ["--version"],
    ["--ver"],
    ["--vir", "train.py"],
    ["--print-completion", "bash"],
    ["--print-completion", "fish"],
    ["--print-completion"],
    ["--", "train.py"],
    ["--", "train.py", "--", "x"],
    ["train.py", "--", "x"],
    ["train.py", "x", "--", "y"],
    ["train.py", "--nnodes", "--", "y"],
    ["--", "--nnodes"],
    ["--nnodes", "--", "train.py"],
    ["--", "--"],
    ["--"],
    ["-m", "--", "train.py", "--", "--"],
    ["train.py", "--nproc"],
    ["train.py", "--help"],
    ["--master-port", "-1", "train.py"],
    ["--master-port", "-.5", "train.py"],
    ["--master-port", "-x", "train.py"],
    ["-1", "x"],
    ["-1x"],
    ["-.5"],
    ["-.x"],
    ["--role", "--no such", "train.py"],
    ["--role", "-a b", "train.py"],
    ["-a b", "c"],
    ["-=3", "train.py"],
    ["--=3", "train.py"],
    ["-", "x"],
    ["", "x"],
    ["--nope", "train.py"],
    ["--nope=1", "-x", "train.py"],
    ["--nope", "1", "train.py"],
    ["-x3", "train.py"],
    ["--max-restarts", "x", "train.py"],
    ["--max-restarts", " 1_0 ", "train.py"],
    ["--max-restarts", "it's", "train.py"],
    ["--max-restarts", "it's \"x\"\t\\", "train.py"],
    ["--max-restarts", "gr\u00fc\u00df\u00e9\u0007", "train.py"],
    ["--monitor-interval", "1e-2", "train.py"],
    ["--monitor-interval", "x"],
    ["--start-method", "zz", "train.py"],
    ["--start-method", "fo", "train.py"],
    ["--numa-binding", "node", "train.py"],
    ["--exit-code", "worker", "train.py"],
    ["--exit-on", "17,SIGBUS", "train.py"],
    ["--exit_code=2", "train.py"],
    ["--on-timer-expiry", "exit-agent", "train.py"],
    ["--on-node-loss", "wait", "--scale_up=90", "train.py"],
    ["--on_node_loss=never", "train.py"],
    ["--standalone=1", "train.py"],
    ["--standalone=", "train.py"],
    ["--duplicate-stdout-filters", "a,,b,c", "train.py"],
    ["--duplicate-stdout-filters", "", "train.py"],
    ["--duplicate-stderr-filters", ",,,", "train.py"],
    ["--nnodes", "1", "--nnodes", "2", "train.py"],
    ["--max-restarts", "x", "--nope"],
    ["--nope", "--max-restarts", "x"],
    ["-t", "1", "-r", "2", "-m", "a", "-m"],
]

VARIABLES = {
    "PET_NNODES": ["1", "2:3", ""],
    "PET_STANDALONE": ["0", "1", " 2 "],
    "PET_MAX_RESTARTS": ["3", "-1"],
    "PET_MONITOR_INTERVAL": ["1e1"],
    "PET_LOG_DIR": ["", "/logs"],
    "PET_MASTER_PORT": ["1234"],
    "PET_MODULE": ["1"],
    "PET_DUPLICATE_STDOUT_FILTERS": ["", "a,,b,c"],
    "PET_LOGS_SPECS": ["not read"],
    "PET_NUMA_BINDING": ["not read"],
    "PET_START_METHOD": ["fork"],
    "PET_SHUTDOWN_TIMEOUT": ["5"],
    "COLUMNS": ["40", "60", "100", "200"],
}

NAMES = """--nnodes --nproc-per-node --nproc_per_node --rdzv-backend --rdzv_id --standalone --max-restarts
--max_restarts --monitor-interval --start-method --role -m --module --no-python --no_python --run-path
--log-dir -r --redirects -t --tee --local-ranks-filter --duplicate-stdout-filters --node-rank
--master-port --master_addr --numa-binding --shutdown-timeout --virtual-local-rank --exit-code
--on-node-loss --scale-up --evidence --evidence-timeout""".split()
VALUES = ["1", "3", "0:1", "-1", "-.5", "x", "", "a b", "spawn", "node", "--", "worker", "1_0", "2.5", "-x y"]
OTHERS = ["train.py", "x", "--", "-", "-mt3", "-mr", "-mmt", "-x", "--nope", "--nope=1", "--n", "--r", "--rd", "-h"]


def option_word(draw):
    """A name: whole, cut short, or with a value attached."""
    name = draw.choice(NAMES)
    if draw.random() < 0.3:
        name = name[: draw.randint(1, len(name))]
    if draw.random() < 0.3:
        name += draw.choice(["=", "", "=="]) + draw.choice(VALUES)
    return name


def draw_line(draw):
    words = []
    for _ in range(draw.randint(0, 7)):
        kind = draw.random()
        words.append(option_word(draw) if kind < 0.55 else draw.choice(VALUES if kind < 0.8 else OTHERS))
    if draw.random() < 0.6:
        words.append("train.py")
    return words


def draw_environment(draw):
    names = draw.sample(sorted(VARIABLES), draw.choice([0, 0, 0, 1, 3]))
    return {name: draw.choice(VARIABLES[name]) for name in names}


def draw_positionals(draw):
    arities = [draw.choice(["one", "optional", "any", "some"]) for _ in range(draw.randint(0, 3))]
    if draw.random() < 0.2:
        arities.append("remainder")
    weights = {"a": 6, "b": 6, "--": 3, "-v": 3, "--size": 2, "-s1": 1, "-1": 1, "--nope": 1}
    words = draw.choices(list(weights), list(weights.values()), k=draw.randint(0, 6))
    return {"arities": arities, "arguments": words}


def requests():
    draw = random.Random(SEED)
    yield from ({"arguments": words} for words in CHOSEN)
    for _ in range(DRAWN_LINES):
        yield {"arguments": draw_line(draw), "environment": draw_environment(draw)}
    for _ in range(DRAWN_POSITIONALS):
        yield draw_positionals(draw)


def shortened(answer, defaults, usage):
    """The answer without what all answers share: values by default, the usage in front of an error."""
    if answer["outcome"] == "values":
        changed = {name: value for name, value in answer["values"].items() if value != defaults[name]}
        return {"outcome": "values", "values": changed}
    if answer["outcome"] == "mistake":
        assert answer["text"].startswith(usage)
        return {"outcome": "mistake", "text": answer["text"].removeprefix(usage)}
    return answer


def read_vectors(path):
    """(request, whole answer) of every stored vector."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    for request, answer in stored["vectors"]:
        if "arities" not in request and answer["outcome"] == "values":
            answer["values"] = stored["defaults"] | answer["values"]
        if "arities" not in request and answer["outcome"] == "mistake":
            columns = request.get("environment", {}).get("COLUMNS", "80")
            answer["text"] = stored["usages"][columns] + answer["text"]
        yield request, answer


def main():
    from option_oracle import MATCHES_MUSTER, answer

    if not MATCHES_MUSTER:
        raise SystemExit("the answers have to come from Python 3.14 or newer")
    defaults = answer({"arguments": ["train.py"]})["values"]
    usages = {}
    for columns in ["80", *VARIABLES["COLUMNS"]]:
        text = answer({"arguments": [], "environment": {"COLUMNS": columns}})["text"]
        usages[columns] = text[: text.index("torchrun: error:")]
    vectors = []
    for request in requests():
        whole = answer(request)
        if "arities" not in request:
            columns = request.get("environment", {}).get("COLUMNS", "80")
            whole = shortened(whole, defaults, usages[columns])
        vectors.append(json.dumps([request, whole]))
    print(f'{{"defaults": {json.dumps(defaults)},\n"usages": {json.dumps(usages, indent=0)},')
    print('"vectors": [\n' + ",\n".join(vectors) + "\n]}")


if __name__ == "__main__":
    main()
