# SPDX-License-Identifier: BSD-3-Clause
"""In which workers the hook takes the mutex by which the agent hears of their end early, and that nobody else sees it."""

import os
import struct

import pytest

from support.gatekeeper import HEAD
from support.standby_programs import keeper, write  # noqa: F401 (fixtures)

pytestmark = pytest.mark.plain_build  # the hook is Python alone, and the agent is played here

OWNER_DIED = 0x40000000  # What the kernel writes into a robust mutex when its owner ends.
FAKE = "import ctypes, colorsys\nprint(ctypes.__file__)\n"


def words(record):
    """The mutex, after the end of its owner if it has one."""
    return struct.unpack("16I", os.pread(record, HEAD, 0)[:64])


def run(keeper, *, record=None, **changes):
    """Runs the script cold with the hook; returns its status and the words of its mutex."""
    record = record or keeper.record_file()
    process = keeper.start(["script.py"], keeper.environment("record", **changes), (record,), keeper.streams())
    return process.wait(60), words(record)


SCRIPTS = {
    "import ctypes, colorsys": True,
    "import os, ctypes, colorsys\nos._exit(0)": True,
    "import os\nos.environ['CHANGED'] = '1'\nimport ctypes, colorsys": True,
    "import colorsys": False,
    "import threading, ctypes\nthread = threading.Thread(target=lambda: __import__('colorsys'))\n"
    "thread.start()\nthread.join()": False,
    "import os, ctypes\nif os.fork() == 0:\n    import colorsys\n    os._exit(0)\nos.wait()": False,
    "import os, ctypes\nos.closerange(3, 1100)\nimport colorsys": False,
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_it_is_taken_once_ctypes_is_there_and_by_the_first_thread(keeper, scratch, script):
    write(scratch, {"script.py": script})
    status, found = run(keeper)
    assert status == 0
    assert (OWNER_DIED in found) == SCRIPTS[script], found
    assert SCRIPTS[script] or not any(found)


def test_a_standby_worker_that_has_ctypes_takes_it_before_the_program_begins(keeper, scratch):
    write(scratch, {"script.py": "print('runs')\n"})
    learned = keeper.recorded(["-c", "import ctypes, colorsys"]).modules()
    assert "ctypes" in learned
    spare = keeper.spare(["script.py"])
    spare.warm(learned)
    spare.open_gate(keeper.streams())
    assert spare.finish().out == b"runs\n"
    assert OWNER_DIED in words(spare.record)


def test_an_agent_that_leaves_no_room_for_it_gets_none(keeper, scratch):
    write(scratch, {"script.py": "import ctypes, colorsys, json\n"})
    record = keeper.keep(os.memfd_create("muster-record"))
    assert run(keeper, record=keeper.keep(os.open(f"/proc/self/fd/{record}", os.O_RDWR | os.O_APPEND)))[0] == 0
    text = os.pread(record, 1 << 16, 0)
    assert text.startswith(b"hello 1 ") and b"\0" not in text


FAKES = {"empty": "", "fails": "def CDLL(name):\n    raise ValueError\n", "odd": "CDLL = c_void_p = c_size_t = c_long = 7\n"}


@pytest.mark.parametrize("kind", FAKES)
def test_another_module_of_that_name_is_none_of_its_business(keeper, scratch, kind):
    write(scratch, {"script.py": FAKE, "ctypes.py": FAKES[kind]})
    cold = keeper.cold(["script.py"])
    recorded = keeper.recorded(["script.py"])
    assert recorded.visible() == cold.visible() and cold.status == 0
    assert "colorsys" in recorded.modules()


PROGRAM = """
    import colorsys, ctypes, os, subprocess, sys, threading
    import wave
    print(sorted(vars(ctypes)), sorted(vars(ctypes.pythonapi)), [name for name in sys.modules if "muster" in name])
    print(sorted(fd for fd in map(int, os.listdir("/proc/self/fd")) if fd < 900), ctypes.get_errno())
    if os.fork() == 0:
        print("child", flush=True)
        os._exit(3)
    print(os.wait()[1], subprocess.call([sys.executable, "-c", "exit(4)"]), threading.active_count())
    sys.exit(5)
    """


def test_a_program_does_not_see_it(keeper, scratch):
    write(scratch, {"script.py": PROGRAM})
    cold = keeper.cold(["script.py"])
    recorded = keeper.recorded(["script.py"])
    assert recorded.visible() == cold.visible() and cold.status == 5
    assert keeper.warm(["script.py"], recorded.modules()).visible() == cold.visible()
