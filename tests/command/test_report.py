# SPDX-License-Identifier: BSD-3-Clause
"""`muster report` and `muster dashboard`: a job's files and a running job as JSON, as a page and as a trace."""

import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
from importlib import util

import pytest

from support.json_schema import check
from support.nodes import wait_until
from support.peers import DEFAULT_ROOT, give_up

HOSTILE = "<script>alert(1)</script> </script> \u202e \u2028 <b>"
CHROMIUM = "/usr/bin/chromium"


def entry(seq, at, kind, node="node0", **fields):
    severity = "error" if kind in ("worker_failed", "node_lost") else "info"
    return {"schema": "muster.event/1", "seq": seq, "time": 1.79e9 + at, "node": node, "kind": kind, "severity": severity, "round": 0} | fields


def job_of(count, text="boom"):
    """The entries of each node of a job in which rank 1 fails once."""
    for number in range(count):
        node = f"gpu-n{number:05}"
        who = {"node": node}
        yield [
            entry(1, 0, "joined", rank=number, first_rank=number * 8, workers=8, version="1", **who),
            entry(2, 0.1, "world", nodes=count, workers=count * 8, reason="first", charged=False, used=0, max=3, **who),
            entry(3, 0.2, "started", attempt=0, from_standby=0, last=0, **who),
            *([entry(4, 9, "worker_failed", rank=1, local_rank=1, pid=7, exit=1, text=text, first=True, **who)] if number == 0 else []),
            entry(5, 9.01, "stopping", reason="a worker failed", cause="worker_failed", **who),
            entry(6, 9.2, "stopped", reason="a worker failed", last=1, **who),
            entry(7, 9.3, "world", nodes=count, workers=count * 8, reason="again", charged=True, used=1, max=3, **who) | {"round": 1},
            entry(8, 9.3, "joined", rank=number, first_rank=number * 8, workers=8, version="1", **who) | {"round": 1},
            entry(9, 9.4, "started", attempt=1, from_standby=0, last=0, **who) | {"round": 1},
        ]


def write(path, entries):
    path.write_text("".join(json.dumps(e) + "\n" for e in entries))
    return path


@pytest.fixture
def files(scratch):
    return [write(scratch / f"n{i}.jsonl", entries) for i, entries in enumerate(job_of(2, HOSTILE))]


@pytest.fixture
def report(muster):
    return lambda *words: muster.run(["report", *map(str, words)])


def data_of(page):
    (inside,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(inside)


def test_files_of_nodes_are_one_status_with_recoveries_and_nodes(report, files):
    told = report("--json", *files)
    assert told.status == 0, told
    status = check(json.loads(told.out), "status")
    assert status["nodes"]["name"] == ["gpu-n00000", "gpu-n00001"] and status["job"]["state"] == "running"
    (recovery,) = status["recoveries"]
    assert recovery["rank"] == 1 and recovery["over"] and recovery["phases"]["stopped"]["took"] == pytest.approx(0.2, abs=0.001)


def test_a_file_that_is_named_twice_counts_once(report, files):
    assert report("--json", *files, files[0]).out == report("--json", *files).out


def test_a_page_holds_its_data_as_data(report, files):
    told = report(*files)
    assert told.status == 0 and told.out.count("<script") == 2, told
    data = data_of(told.out)
    text = next(e["text"] for e in data["events"] if e["kind"] == "worker_failed")
    assert text.startswith("<script>alert(1)</script> </script>") and data["schema"] == "muster.page/1"
    assert len(told.out) < 90_000 and "http://" not in told.out.replace("http://www.w3.org/2000/svg", "") and "https://" not in told.out


def test_a_trace_has_a_process_for_each_node_and_a_thread_for_each_local_rank(report, files):
    trace = json.loads(report("--trace", *files).out)["traceEvents"]
    names = {e["args"]["name"] for e in trace if e["name"] == "process_name"}
    assert names == {"job", "gpu-n00000", "gpu-n00001"}
    assert len([e for e in trace if e["ph"] == "X" and e["name"] == "attempt 1"]) == 16
    (failure,) = [e for e in trace if e["ph"] == "i"]
    assert failure["name"] == "worker_failed" and failure["tid"] == 1
    assert {"stopped", "agreed", "started"} <= {e["name"] for e in trace if e["ph"] == "X"}


def test_bad_files_are_named(report, files, scratch):
    os.mkfifo(scratch / "fifo")
    (scratch / "empty").write_text("")
    (scratch / "other").write_text('{"schema":"other/1"}\n' * 2000)
    (scratch / "nul").write_bytes(bytes(1 << 20))
    for name, words in [("fifo", "is no regular file"), ("empty", "has no entry"), ("other", "is no file of events"), ("nul", "has no entry"), ("none", "No such file")]:
        told = report("--json", scratch / name)
        assert told.status == 1 and words in told.err and name in told.err, told
    told = report(files[0], "none-such")
    assert told.status == 2 and "there is no file 'none-such'" in told.err
    assert report("--json", "--trace", files[0]).status == 2


def test_a_cut_line_and_strange_ones_are_left_out_with_a_word(report, files):
    whole = report("--json", files[0]).out
    with files[0].open("ab") as file:
        file.write(b"x\n\0\0\n" + b"y" * 100_000 + b'\n{"schema":"muster.event/1","seq":10,')
    told = report("--json", files[0])
    assert told.status == 0 and told.out == whole
    assert "3 lines that are no entries" in told.err and "the last line, which is cut" in told.err


def test_files_of_jobs_that_never_met_are_told(report, files, scratch):
    late = [e | {"time": e["time"] + 9000, "node": "late"} for e in next(iter(job_of(1)))]
    told = report("--json", files[0], write(scratch / "late.jsonl", late))
    assert told.status == 0 and "it may be of another job" in told.err


def test_of_a_file_of_two_agents_the_last_one_counts(report, scratch):
    first = next(iter(job_of(1)))
    path = write(scratch / "two.jsonl", first + [e | {"time": e["time"] + 500} for e in first])
    told = report("--json", path)
    assert told.status == 0 and "are left out" in told.err
    assert len(json.loads(told.out)["recoveries"]) == 1


class Dashboard:
    def __init__(self, muster, place, *words):
        self.process = subprocess.Popen([muster.binary, "dashboard", *words], env=muster.environment(MUSTER_RUNTIME_DIR=place),
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        self.port, self.key = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#([0-9a-f]{32})", self.url).groups()

    def ask(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=20)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()

    def end(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=20), self.process.returncode


@pytest.fixture
def running(make_job, scratch, muster):
    place = scratch / "announced"
    job = make_job(1, env={"MUSTER_RUNTIME_DIR": place})
    job.start("node0")
    wait_until(lambda: [p for p in place.glob("job-*") if '"socket"' in p.read_text()], "the agent")
    dashboard = Dashboard(muster, place)
    yield dashboard
    dashboard.process.kill()
    job.started[0].signal(15)
    job.finish()


def test_the_dashboard_serves_its_page_to_all_and_its_data_to_the_key(running):
    status, headers, page = running.ask("/")
    assert status == 200 and data_of(page) is None
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store" and "Access-Control-Allow-Origin" not in headers
    for wrong in [{}, {"Authorization": "Bearer " + "0" * 32}, {"Authorization": running.key}]:
        assert running.ask("/v1/page", **wrong)[0] == 401
    status, headers, body = running.ask("/v1/page", Authorization="Bearer " + running.key)
    data = json.loads(body)
    assert status == 200 and data["live"] and check(data["status"], "status")["nodes"]["name"] == ["node0"]
    assert running.ask("/v1/page", Authorization="Bearer " + running.key, Host="evil.example")[0] == 421
    assert running.ask("/", method="POST")[0] == 405 and running.ask("/", method="HEAD")[0] == 200
    assert running.ask("/x", Authorization="Bearer " + running.key)[0] == 404
    (_, errors), code = running.end()
    assert code == 0 and errors == ""


def test_a_taken_port_and_a_strange_address_are_told(running, muster, scratch):
    env = {"MUSTER_RUNTIME_DIR": scratch / "announced"}
    told = muster.run(["dashboard", "--listen", f"127.0.0.1:{running.port}"], env=env)
    assert told.status == 1 and running.port in told.err, told
    assert muster.run(["dashboard", "--listen", "127.0.0.1:x"], env=env).status == 2


# In a browser.


@pytest.fixture(scope="module")
def browser():
    if util.find_spec("selenium") is None or not os.path.exists(CHROMIUM):
        pytest.skip("Debian's chromium, chromium-driver and python3-selenium are not installed: tools/install-dependencies browser")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    yield driver
    driver.quit()


def look_at(browser, url, width=1360, scheme="light"):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
    browser.get("about:blank")
    browser.get(url)
    assert browser.get_log("browser") == []


def text_of(browser, name):
    return browser.find_element("id", name).text


@pytest.fixture
def page(report, scratch):
    def page(count, text="boom"):
        path = write(scratch / "all.jsonl", sorted((e for node in job_of(count, text) for e in node), key=lambda e: e["time"]))
        told = report(path)
        assert told.status == 0, told.err
        (scratch / "page.html").write_text(told.out)
        return f"file://{scratch}/page.html"

    return page


@pytest.mark.parametrize("width", [400, 1360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_shows_hostile_text_as_text(browser, page, width, scheme):
    look_at(browser, page(8, HOSTILE), width, scheme)
    assert "8 of 8 nodes run" in text_of(browser, "story")
    assert "<script>alert(1)</script>" in text_of(browser, "story") and "<script>alert(1)</script>" in text_of(browser, "rec")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script("return document.querySelectorAll('[style], script').length") == 2
    dark = browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 24)"
    assert dark == (scheme == "dark")


@pytest.mark.parametrize("count", [1000, pytest.param(10_000, marks=pytest.mark.plain_build)])
def test_many_nodes_are_few_elements(browser, page, count):
    look_at(browser, page(count))
    assert f"{count:,} of {count:,} nodes run" in text_of(browser, "story")
    assert browser.execute_script("return document.querySelectorAll('*').length") < 3000
    assert f"gpu-n[00001-{count - 1:05}]" in text_of(browser, "groups")


def test_arrows_walk_the_map_and_what_is_written_stays(browser, page):
    from selenium.webdriver.common.keys import Keys

    look_at(browser, page(8))
    found = browser.find_element("id", "map")
    found.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert text_of(browser, "tip").startswith("gpu-n00001: node 1, ranks 8 to 15, running")
    found.send_keys(Keys.END)
    assert text_of(browser, "tip").startswith("gpu-n00007")
    field = browser.find_element("id", "filter")
    field.send_keys("boom")
    assert len(browser.find_elements("css selector", "#log tr")) == 1
    first = browser.find_element("css selector", "#rec tr")
    for _ in range(20):
        browser.execute_script("take(structuredClone(D)); draw()")
    assert browser.switch_to.active_element == field and field.get_attribute("value") == "boom"
    assert browser.find_element("css selector", "#rec tr") == first


def test_the_dashboard_is_live_in_a_browser_and_asks_for_its_key(browser, running):
    look_at(browser, running.url)
    wait_until(lambda: text_of(browser, "live").startswith("live, "), "the page is live")
    assert text_of(browser, "job") != "Muster" and "Only" not in text_of(browser, "story")
    look_at(browser, running.url.split("#")[0])
    assert "has not the key" in text_of(browser, "story")


def axe_of():
    path = pathlib.Path(os.environ.get("PEER_ROOT", DEFAULT_ROOT)).parent / "axe/node_modules/axe-core/axe.min.js"
    if not path.exists():
        give_up("axe-core is not installed: tools/install-peers")
    return path.read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_page(browser, page, scheme):
    axe = axe_of()
    look_at(browser, page(8), 1360, scheme)
    browser.execute_script(axe)
    found = browser.execute_async_script("axe.run(document).then(arguments[0])")
    assert found["passes"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]] == []


def test_the_dashboard_follows_a_job_through_a_failure(browser, make_job, muster, scratch):
    place = scratch / "announced"
    job = make_job(2, env={"MUSTER_RUNTIME_DIR": place})
    for name in ("node1", "node2"):
        job.start(name)
    world = job.wait_for_world("node1", "node2")
    dashboard = Dashboard(muster, place)
    look_at(browser, dashboard.url)
    wait_until(lambda: "2 of 2 nodes run" in text_of(browser, "story"), "the job on the page")
    assert "exit code" not in text_of(browser, "rec")
    world.of("node2").end(7)
    world = job.wait_for_world("node1", "node2")
    wait_until(lambda: "exit code 7" in text_of(browser, "rec"), "the failure on the page")
    wait_until(lambda: "2 of 2 nodes run" in text_of(browser, "story"), "the job that goes on")
    assert browser.get_log("browser") == []
    world.end()
    assert job.succeeds()
    dashboard.end()
