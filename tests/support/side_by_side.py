# SPDX-License-Identifier: BSD-3-Clause
"""Runs the same job under torchrun and under muster, and makes what both left behind comparable."""

import json
import re
import socket
import subprocess

DUMP_WORKER = """
import json, os, signal, sys
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
facts = {
    "argv": sys.argv[1:], "environment": dict(os.environ), "cwd": os.getcwd(),
    "leads its session": os.getsid(0) == os.getpid() == os.getpgid(0),
    "blocked signals": status["SigBlk"].strip(), "stdin": os.readlink("/proc/self/fd/0"),
    "descriptors above 2": [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 3 + ("MUSTER_PROGRESS" in os.environ)],
    "unbuffered": sys.stdout.write_through,
}
with open("facts." + os.environ["RANK"] + "." + os.environ["TORCHELASTIC_RESTART_COUNT"], "w") as out:
    json.dump(facts, out)
"""

# What can never be equal: patterns and what stands for them.
NORMALISATIONS = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"torchelastic_[a-z0-9_]{8}"), "torchelastic_<random>"),
    (re.compile(r"(<uuid>|none|job7)_[a-z0-9_]{8}\b"), r"\1_<random>"),
    (re.compile(r"\(pid: \d+\)"), "(pid: <pid>)"),
    (re.compile(r"PID \d+"), "PID <pid>"),
    (re.compile(r"\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d"), "<time>"),
    (re.compile(r'"timestamp": "?\d+"?'), '"timestamp": "<seconds>"'),
]
# What shells change, and what tells muster of the peer's interpreter, which torchrun is started by.
VOLATILE_VARIABLES = {"_", "SHLVL", "PWD", "OLDPWD", "LINES", "COLUMNS", "PYTHON_EXEC"}


def normalise(text, directory):
    text = text.replace(str(directory), "<dir>")
    # torchrun says the qualified name, muster the host's
    names = "|".join(re.escape(name) for name in (socket.getfqdn(), socket.gethostname()))
    text = re.sub(rf"host      : ({names})$", "host      : <host>", text, flags=re.MULTILINE)
    for pattern, replacement in NORMALISATIONS:
        text = pattern.sub(replacement, text)
    return text


class Side:
    """One launcher's run in a directory of its own."""

    def __init__(self, name, directory, end):
        self.name, self.directory, self.end = name, directory, end

    @property
    def status(self):
        return self.end.status

    def facts(self, rank, attempt=0):
        """What the dump worker of that rank wrote."""
        path = self.directory / f"facts.{rank}.{attempt}"
        assert path.exists(), f"{self.name} wrote no {path.name}\n{self.end}"
        return json.loads(normalise(path.read_text(), self.directory))

    def environment(self, rank, attempt=0):
        environment = self.facts(rank, attempt)["environment"]
        environment["MASTER_PORT"] = re.sub(r"^[1-9]\d*$", "<port>", environment["MASTER_PORT"])
        return {name: value for name, value in environment.items() if name not in VOLATILE_VARIABLES}

    def files(self, folder):
        """All but the chronicle, which torchrun does not write (chosen_differences.CHRONICLE)."""
        return [path for path in sorted((self.directory / folder).rglob("*")) if path.name != "events.jsonl"]

    def tree(self, folder):
        """{relative path: content} of a directory; directories end in a slash and have no content."""
        root = self.directory / folder
        found = {}
        for path in self.files(folder):
            name = normalise(str(path.relative_to(root)), self.directory)
            if path.is_dir():
                found[name + "/"] = None
            else:
                text = normalise(path.read_text(errors="replace"), self.directory)
                # several workers write to a filtered file, in any order
                found[name] = sorted(text.splitlines()) if path.name.startswith("filtered_") else text
        return found

    def modes(self, folder):
        root = self.directory / folder
        return {
            normalise(str(path.relative_to(root)), self.directory): oct(path.stat().st_mode & 0o7777)
            for path in self.files(folder)
        }

    def report(self):
        """The failure report as {heading: lines}, without what differs from run to run."""
        sections, heading = {}, "title"
        for line in self.report_lines():
            if line in ("Failures:", "Root Cause (first observed failure):"):
                heading = line
            sections.setdefault(heading, []).append(line)
        return {heading: [line for line in lines if not re.fullmatch(r"[=-]+", line)] for heading, lines in sections.items()}

    def report_lines(self):
        """The failure report's lines, from rule to rule."""
        lines = self.end.err.splitlines()
        rules = [number for number, line in enumerate(lines) if re.fullmatch(r"={20,}", line)]
        assert len(rules) >= 2, f"{self.name} printed no report\n{self.end}"
        return normalise("\n".join(lines[rules[-2] : rules[-1] + 1]), self.directory).splitlines()

    def console(self):
        """Both streams of the console as sorted lines, without the launcher's own log lines."""
        own = re.compile(r"^[VIWEC]\d{4} |^muster: |^\[\w+\] ")
        return [
            sorted(normalise(line, self.directory) for line in text.splitlines() if not own.match(line))
            for text in (self.end.out, self.end.err)
        ]


class SideBySide:
    """Starts the pair: `run(arguments, files=..., env=...)` gives (torchrun's side, muster's side)."""

    def __init__(self, muster, peer, scratch):
        self.muster, self.peer, self.scratch, self.count = muster, peer, scratch, 0

    def _prepare(self, name, files):
        directory = self.scratch / f"{name}{self.count}"
        directory.mkdir()
        (directory / "tmp").mkdir()
        (directory / "dump.py").write_text(DUMP_WORKER)
        for file_name, text in (files or {}).items():
            (directory / file_name).write_text(text)
            (directory / file_name).chmod(0o755)
        return directory

    def _side(self, name, program, spawn, words, directory, env, timeout):
        environment = {"TMPDIR": directory / "tmp", "USE_LIBUV": 0, **(env or {})}
        environment = {key: fill(value, directory) for key, value in environment.items()}
        running = self.muster.start(
            [*words], program=program, env=environment, cwd=directory, spawn=spawn
        )
        return Side(name, directory, running.finish(timeout))

    def run(self, arguments, files=None, env=None, timeout=60):
        self.count += 1
        sides = []
        for name, program, spawn, extra in (
            ("torchrun", self.peer.torchrun, self.peer.spawn, {}),
            ("muster", self.muster.binary, subprocess.Popen, {"PYTHON_EXEC": self.peer.python}),
        ):
            directory = self._prepare(name, files)
            words = [fill(str(word), directory) for word in arguments]
            if name == "muster":
                words = ["run", *words]
            sides.append(self._side(name, program, spawn, words, directory, {**extra, **(env or {})}, timeout))
        return sides


def fill(value, directory):
    """`{dir}` in an argument or a variable stands for the side's own directory."""
    return value.replace("{dir}", str(directory)) if isinstance(value, str) else value
