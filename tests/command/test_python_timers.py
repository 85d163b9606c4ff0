# SPDX-License-Identifier: BSD-3-Clause
"""muster.timer and muster.timer_server, with each other and with an agent."""

import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import time

import pytest

from support.own_library import environment, import_module

pytestmark = pytest.mark.plain_build
timer = import_module("muster.timer")
timer_server = import_module("muster.timer_server")
local_timer = import_module("muster.local_timer")

LONG_SECONDS = 60

# Holds a timer for so many seconds, and stays.
HOLDER = """\
import signal, sys
from muster import timer
timer.configure(timer.FileTimerClient(sys.argv[1], int(sys.argv[3])))
with timer.expires(after=float(sys.argv[2]), scope="hangs"):
    print("held", flush=True)
    signal.pause()
"""


class Server:
    """A server, and what it has told."""

    def __init__(self, path, **options):
        self.told = queue.Queue()
        self.server = timer_server.FileTimerServer(path, "run", log_event=self._take, **options)

    def _take(self, name, request):
        self.told.put((name, request))

    def next(self):
        return self.told.get(timeout=LONG_SECONDS)


@pytest.fixture
def make_server(scratch):
    made = []

    def make(**options):
        made.append(Server(scratch / "timers", **options))
        return made[-1]

    yield make
    for each in made:
        each.server.stop()
    assert not (scratch / "timers").exists()


def hold(scratch, seconds, number=signal.SIGKILL):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, scratch / "timers", str(seconds), str(int(number))],
                              stdout=subprocess.PIPE, text=True, env={**os.environ, **environment()})
    holder.stdout.readline()  # it holds the timer, or has been ended
    holder.stdout.close()
    return holder


def test_an_expired_timer_ends_its_process_alone(make_server, scratch):
    watched = make_server()
    watched.server.start()
    assert watched.next() == ("watchdog started", None)
    patient, hanging = hold(scratch, 3600), hold(scratch, 0.05, signal.SIGUSR1)
    assert hanging.wait(LONG_SECONDS) == -signal.SIGUSR1
    name, request = watched.next()
    assert (name, request.worker_pid, request.scope_id, request.signal) == (
        "timer expired", hanging.pid, "hangs", signal.SIGUSR1)
    assert watched.next() == ("kill worker process", request)
    assert patient.poll() is None and watched.server.timer_count() == 1
    watched.server.clear_timers({patient.pid})
    assert watched.server.timer_count() == 0
    patient.kill()
    patient.wait()
    watched.server.stop()
    assert watched.next() == ("watchdog stopped", None)


def test_a_program_registers_timers_itself(make_server, caplog):
    watched = make_server(may_ask=lambda pid: pid == os.getpid())
    watched.server.start()
    far = time.time() + 3600
    requests = [timer.FileTimerRequest(os.getpid(), scope, moment) for scope, moment in (("late", far + 1), ("soon", far))]
    watched.server.register_timers([*requests, timer.FileTimerRequest(os.getpid(), "never", float("inf"))])
    assert watched.server.timer_count() == 2
    expired = watched.server.get_expired_timers(far)
    assert [(pid, [timer.scope_id for timer in timers]) for pid, timers in expired.items()] == [(os.getpid(), ["soon"])]
    watched.server.register_timers([timer.FileTimerRequest(os.getpid(), "soon", -1)])
    assert watched.server.get_expired_timers(far) == {}
    with caplog.at_level("DEBUG"):
        watched.server.register_timers([timer.FileTimerRequest(os.getppid(), "mine", far)])
    assert watched.server.timer_count() == 1
    assert "run_id=run: watchdog: process" in caplog.text


def test_a_process_that_runs_is_told_from_one_that_does_not():
    child = subprocess.Popen(["true"])
    child.wait()
    is_running = timer_server.FileTimerServer.is_process_running
    assert (is_running(os.getpid()), is_running(child.pid), is_running(0), is_running(-1)) == (True, False, False, False)


def test_progress_is_now_while_nothing_is_overdue(make_server):
    watched = make_server()
    before = int(time.time())
    watched.server.start()
    assert before <= watched.server.get_last_progress_time() <= time.time()
    watched.server.stop()
    assert before <= watched.server.get_last_progress_time() <= time.time()


def test_a_program_says_who_may_ask_and_ends_processes_itself(make_server):
    asked, killed = queue.Queue(), queue.Queue()

    def may_ask(pid):
        asked.put(pid)
        return True

    def kill(pid, number):
        killed.put((pid, number))
        return True

    watched = make_server(may_ask=may_ask, kill=kill)
    watched.server.start()
    client = timer.FileTimerClient(watched.server._file_path, signal.SIGTERM)
    client.acquire("mine", time.time() - 1)
    assert asked.get(timeout=LONG_SECONDS) == os.getpid()
    assert killed.get(timeout=LONG_SECONDS) == (os.getpid(), signal.SIGTERM)


def test_this_process_is_not_ended_by_its_own_server(make_server):
    watched = make_server()
    watched.server.start()
    timer.FileTimerClient(watched.server._file_path).acquire("mine", 1)
    watched.server.run_once()
    assert watched.next() == ("watchdog started", None)
    assert watched.told.empty()


def test_a_callback_may_stop_the_server(make_server, scratch):
    watched = make_server(kill=lambda pid, number: watched.server.stop() or True, may_ask=lambda pid: True)
    watched.server.start()
    timer.FileTimerClient(watched.server._file_path).acquire("mine", 1)
    while watched.next()[0] != "watchdog stopped":
        pass


def test_a_callback_that_fails_does_no_harm(make_server, scratch, caplog):
    def fail(*_):
        raise OSError("a callback of the test's")

    watched = make_server()
    watched.server._log_event = fail
    watched.server.start()
    hanging = hold(scratch, 0)
    assert hanging.wait(LONG_SECONDS) == -signal.SIGKILL
    assert "a callback of the test's" in caplog.text


def test_wrong_order_is_an_error(make_server, scratch):
    watched = make_server()
    with pytest.raises(ValueError):
        timer_server.FileTimerServer(scratch / "timers", "run")  # which is served
    watched.server.start()
    with pytest.raises(RuntimeError):
        watched.server.start()
    watched.server.stop()
    watched.server.stop()
    for call in (watched.server.start, watched.server.timer_count, lambda: watched.server.clear_timers([1])):
        with pytest.raises((RuntimeError, ValueError)):
            call()
    with pytest.raises(ValueError):
        timer_server.FileTimerServer("", "run")
    with pytest.raises(OSError):
        timer_server.FileTimerServer("/nowhere/timers", "run")


def test_a_client_without_a_server_says_so(scratch, monkeypatch):
    monkeypatch.setattr(timer, "OPENING_SECONDS", 0)
    with pytest.raises(BrokenPipeError, match="no server of timers"):
        timer.FileTimerClient(scratch / "nothing").acquire("s", 1)
    monkeypatch.delenv("TORCHELASTIC_TIMER_FILE", raising=False)
    monkeypatch.setattr(timer, "_timer_client", None)
    with pytest.raises(RuntimeError, match="configure"):
        timer.expires(1)


def test_a_request_that_is_too_long_is_refused(make_server):
    watched = make_server()
    with pytest.raises(RuntimeError, match="4096"):
        timer.FileTimerClient(watched.server._file_path).acquire("s" * 4096, 1)


def test_the_scope_is_the_place_of_the_call():
    class Client:
        acquired = released = None

        def acquire(self, scope, _):
            self.acquired = scope

        def release(self, scope):
            self.released = scope

    client = Client()
    with pytest.raises(ZeroDivisionError), timer.expires(30, client=client):
        raise ZeroDivisionError
    assert client.acquired == client.released
    path, _, line = client.acquired.rpartition("#")
    assert path == __file__ and line.isdigit()


def test_workers_of_an_agent_find_its_timers_by_themselves(muster):
    script = muster.script("worker.py", """
import signal
from muster.timer import expires
with expires(after=0.1, scope="the step that hangs"):
    signal.pause()
""")
    end = muster.run(["run", "--standalone", "--nproc-per-node", 1, script],
                     env={**environment(), "PYTHON_EXEC": sys.executable, "TORCHELASTIC_ENABLE_FILE_TIMER": "1"})
    assert end.status == 1, end
    assert "with SIGKILL, its timers expired: 'the step that hangs'" in end.err, end


def hang(requests, seconds):
    timer.configure(local_timer.LocalTimerClient(requests))
    with timer.expires(after=seconds, scope="hangs"):
        signal.pause()


def finish(requests):
    with timer.expires(after=3600, scope="ends", client=local_timer.LocalTimerClient(requests)):
        pass


def test_a_child_whose_local_timer_expires_is_ended():
    context = multiprocessing.get_context("fork")
    requests = context.Queue()
    server = local_timer.LocalTimerServer(requests, 0.5)
    server.start()
    hanging, finishing = (context.Process(target=target, args=arguments) for target, arguments in (
        (hang, (requests, 0.05)), (finish, (requests,))))
    for child in (hanging, finishing):
        child.start()
    for child in (hanging, finishing):
        child.join(LONG_SECONDS)
    assert (hanging.exitcode, finishing.exitcode) == (-signal.SIGKILL, 0)
    server.stop()


def test_a_local_timer_server_leaves_itself_and_later_processes_alone(caplog):
    server = local_timer.LocalTimerServer(multiprocessing.get_context("fork").Queue(), 0)
    child = subprocess.Popen(["sleep", "60"])
    server.register_timers([local_timer.TimerRequest(os.getpid(), "mine", 1), local_timer.TimerRequest(child.pid, "batch", 1),
                            local_timer.TimerRequest(0, "nobody", 1), local_timer.TimerRequest(child.pid, "late", 9e9)])
    server._started[child.pid] = b"1"  # as if its number had been that of another
    assert sorted(server.get_expired_timers(2)) == [0, *sorted([os.getpid(), child.pid])]
    server._run_watchdog()
    assert child.poll() is None and server._timers == {}
    server.register_timers([local_timer.TimerRequest(child.pid, "batch", 1)])
    server._run_watchdog()
    assert child.wait(LONG_SECONDS) == -signal.SIGKILL


class OwnServer(local_timer.TimerServer):
    """Ends nobody, and says whom it would."""

    def __init__(self, requests):
        super().__init__(requests, 1)
        self.held, self.cleared, self.results = [], [], {1: True, 2: False}

    def register_timers(self, timer_requests):
        self.held += timer_requests

    def clear_timers(self, worker_ids):
        self.cleared.append(worker_ids)

    def get_expired_timers(self, deadline):
        return {each.worker_id: [each] for each in self.held}

    def _reap_worker(self, worker_id):
        return self.results[worker_id]


class OwnQueue(local_timer.RequestQueue):
    def size(self):
        return 3

    def get(self, size, timeout):
        return [local_timer.TimerRequest(worker, "scope", 0) for worker in range(1, size + 1)]


def test_a_program_extends_server_and_queue():
    server = OwnServer(OwnQueue())
    server._run_watchdog()
    assert len(server.held) == 3
    assert server.cleared == [{1, 3}]  # 2 was not ended; 3 has raised KeyError, and counts as ended
