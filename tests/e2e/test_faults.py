#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=480
"""What goes wrong on a real machine: full and read-only disks, killed supervisors, tasks that
misbehave, clocks that jump, work that is cancelled at bad moments, connections that break.

Most cases share one server. Those that need a machine of their own (a disk to fill, a clock to
set) start one. A case that waits for a back-off begins early and is looked at later.
"""
import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import (ALLOT, BUILD, SANITIZED, Failure, Server,  # noqa: E402
                         check_devices, equal, expect, ms, supervisors, wait_for)

PYTHON = "/usr/bin/python3"
# Bounds of time only tell what comes from what never does: a busy machine may take its time.
SLOW = 10 if SANITIZED else 3
PATIENCE = 60  # seconds to wait for anything that has to come

server = Server(simulate="8xH100")


# ---- helpers ---------------------------------------------------------------------------------

def marked(mark):
    """Process ids of what has MARK in its environment, in whichever namespace it lives."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if f"MARK={mark}\0".encode() in f.read():
                    found.append(int(pid))
        except OSError:
            continue
    return found


def submit(script, on=None, **spec):
    """Submits a shell script under a fresh mark; returns the workload's id and the mark."""
    mark = uuid.uuid4().hex
    env = {"MARK": mark, **spec.pop("env", {})}
    body = {"team": "t", "cpu": "10m", "command": ["sh", "-c", script], "env": env, **spec}
    return (on or server).submit(**body)["id"], mark


def events(ident, kind=None, on=None):
    found = (on or server).get(f"/v1/workloads/{ident}/events?limit=1000")["events"]
    return [e for e in found if kind is None or e["type"] == kind]


def ended(ident, on=None, seconds=PATIENCE):
    """The workload once it is over."""
    s = on or server
    return wait_for(f"{ident} to end", lambda: next(
        (w for w in [s.workload(ident)] if w["state"] in ("succeeded", "failed", "cancelled")),
        None), seconds)


def running(ident, on=None):
    """Once all of its tasks run: the workload is "running" from when the first has a place."""
    s = on or server
    s.wait_state(ident, "running")
    wait_for(f"the tasks of {ident} to run", lambda: all(
        task["state"] == "running" for task in s.workload(ident)["tasks_detail"]), PATIENCE)


def wait_log(ident, text, on=None):
    def seen():
        log = (on or server).call("GET", f"/v1/workloads/{ident}/logs")
        return log.status == 200 and text.encode() in log.body
    wait_for(f"{ident} to print {text!r}", seen, PATIENCE)


def nothing_left(mark, seconds=PATIENCE):
    wait_for("all processes of the task to be gone", lambda: not marked(mark), seconds)


def stop(ident, on=None, **body):
    return (on or server).call("POST", f"/v1/workloads/{ident}/stop", body)


def problem(answer, status, code, *words):
    text = answer.body.decode()
    equal((answer.status, answer.json.get("code")), (status, code), text)
    for word in words:
        expect(word in text, f"the error does not say {word!r}: {text}")


def node():
    return server.get("/v1/nodes")["nodes"][0]


# ---- what is looked at later -----------------------------------------------------------------

later = {}


def test_start():
    server.start()
    server.team("t", gpu=8)
    server.team("other", gpu=0)
    later["retry"] = submit('echo "attempt $ALLOT_RESTART_COUNT"; exit 3', max_retries=1)
    later["service"] = submit('echo "attempt $ALLOT_RESTART_COUNT"; '
                              '[ "$ALLOT_RESTART_COUNT" = 1 ] && exec sleep 600; exit 4',
                              kind="service", **{"class": "training"})


# ---- tasks that misbehave --------------------------------------------------------------------

def test_exit_codes_and_signals_are_exact():
    for script, code in (("exit 7", 7), ("exit 255", 255), ("kill -SEGV $$", 139),
                         ("kill -TERM $$", 143), ("kill -KILL $$", 137), ("exit 0", 0)):
        done = server.allot("run", "--team", "t", "--", "sh", "-c", f"echo said; {script}",
                            check=False)
        equal((done.returncode, done.stdout), (code, "said\n"), script)
    done = server.allot("run", "--team", "t", "--", "/no/such/program", check=False)
    equal(done.returncode, 126, "a program that is missing")  # it never ran: not the task's 127
    expect("/no/such/program" in done.stderr, f"it is not named: {done.stderr}")


def test_five_hundred_that_exit_at_once():
    def code(i):
        return i % 5
    batch = [{"team": "t", "cpu": "10m", "command": ["sh", "-c", f"exit {code(i)}"]}
             for i in range(500)]
    before = server.get("/v1/events?limit=1")["next"]
    answer = server.call("POST", "/v1/workloads", {"workloads": batch})
    equal(answer.status, 201, answer.body[:300])
    idents = [w["id"] for w in answer.json["workloads"]]
    wanted = {ident: code(i) for i, ident in enumerate(idents)}
    for ident in idents:
        ended(ident, seconds=5 * PATIENCE)
    tasks, workloads = {}, {}
    while page := server.get(f"/v1/events?after={before}&limit=1000")["events"]:
        before = page[-1]["seq"]
        for e in page:
            if e.get("workload") in wanted and e["type"] == "task.ended":
                tasks.setdefault(e["workload"], []).append(e["data"]["exit_code"])
            if e.get("workload") in wanted and e["type"] == "workload.ended":
                workloads.setdefault(e["workload"], []).append(e["data"]["exit_code"])
    equal(tasks, {ident: [c] for ident, c in wanted.items()}, "ends of tasks")
    equal(workloads, {ident: [c] for ident, c in wanted.items()}, "ends of workloads")


def test_a_task_that_ignores_sigterm():
    stubborn = "trap '' TERM; (while :; do sleep 1; done) & echo ready; while :; do sleep 1; done"
    ident, mark = submit(stubborn, preemption={"grace": "1s"})
    wait_log(ident, "ready")
    expect(len(marked(mark)) >= 3, "too few processes to make this worth while")
    begun = time.monotonic()
    equal(stop(ident).status, 202, "stop")
    workload = ended(ident)
    took = time.monotonic() - begun
    expect(1.0 <= took < 1.0 + 2 * SLOW, f"it took {took:.2f} s with a grace of 1 s")
    equal((workload["state"], workload["tasks_detail"][0]["exit_signal"]), ("cancelled", 9), "end")
    expect("grace" in events(ident, "task.ended")[0]["message"], "the grace is not named")
    nothing_left(mark, 0)


CHILDREN = """
import os, signal, sys, time
for i in range(1000):
    if os.fork() == 0:
        signal.pause()
print("children", flush=True)
signal.pause()
"""


def test_a_thousand_children():
    ident, mark = submit(f'exec {PYTHON} -c "$CODE"', env={"CODE": CHILDREN},
                         preemption={"grace": "10s"})
    wait_log(ident, "children")
    expect(len(marked(mark)) >= 1000, f"only {len(marked(mark))} processes")
    stop(ident)
    equal(ended(ident)["state"], "cancelled", "state")
    nothing_left(mark, 0)


DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    for fd in range(64):
        try:
            os.close(fd)
        except OSError:
            pass
    for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(s, signal.SIG_IGN)
    while True:
        time.sleep(1)
os.wait()
print("daemon", flush=True)
if len(sys.argv) > 1:
    time.sleep(600)
"""


def test_a_daemon_does_not_outlive_its_task():
    for argument in ("", "stay"):
        ident, mark = submit(f'exec {PYTHON} -c "$CODE" {argument}', env={"CODE": DAEMON},
                             preemption={"grace": "300ms"})
        wait_log(ident, "daemon")
        if argument:
            expect(len(marked(mark)) >= 2, "there is no daemon")
            stop(ident)
        equal(ended(ident)["state"], "cancelled" if argument else "succeeded", "state")
        nothing_left(mark, 0)


def folder_bytes(ident):
    total = 0
    for place in ("tasks", "ended"):
        for name in os.listdir(os.path.join(server.data, place)):
            if name.split(".")[0] == str(ident):
                for root, _, files in os.walk(os.path.join(server.data, place, name)):
                    total += sum(os.lstat(os.path.join(root, f)).st_size for f in files)
    return total


def test_a_task_that_fills_its_log():
    line = "x" * 99
    ident, _ = submit(f"yes {line} | head -c 200000000; echo; echo the last line")
    equal(ended(ident)["state"], "succeeded", "state")
    size = folder_bytes(ident)
    expect(1 << 20 < size <= 66 << 20, f"{size} bytes are kept of 200 MB")
    tail = server.allot("logs", "--tail", "3", str(ident)).stdout
    equal(tail, f"{line}\n\nthe last line\n", "the last three lines")
    answer = server.call("GET", f"/v1/workloads/{ident}/logs?offset=0")
    begin = int(answer.headers["X-Log-Offset"])
    expect(begin > 100_000_000, f"the log begins at {begin}")
    equal(begin + len(answer.body), 200_000_000 + len("\nthe last line\n"), "end of the log")
    equal(server.get("/v1/status")["store"]["ok"], True, "store")


def test_more_memory_than_its_limit():
    if node()["limits"] == "none":
        raise tap.Skip("this machine has no control groups to limit memory with")
    ident, mark = submit(f"{PYTHON} -c 'bytearray(256 << 20)'; exit $?", memory="64MiB")
    workload = ended(ident)
    equal(workload["state"], "failed", "state")
    expect("out of memory" in workload["message"], f"it says: {workload['message']}")
    nothing_left(mark, 0)


# ---- limits and gangs ------------------------------------------------------------------------

def test_longer_than_max_run_time():
    ident, mark = submit("sleep 600", max_run_time="1s", preemption={"grace": "1s"})
    workload = ended(ident)
    equal((workload["state"], workload["exit_code"]), ("failed", 124), "state, exit code")
    expect("max_run_time" in workload["message"], f"it says: {workload['message']}")
    took = ms(workload["ended_at"]) - ms(workload["started_at"])
    expect(1000 <= took < 1000 + 1500 * SLOW, f"it ran {took} ms")
    nothing_left(mark, 0)


def test_a_gang_falls_together():
    ident, mark = submit('[ "$ALLOT_RANK" = 1 ] && { sleep 0.3; exit 5; }; exec sleep 600',
                         tasks=3, gpus=1, preemption={"grace": "1s"})
    workload = ended(ident)
    equal((workload["state"], workload["exit_code"]), ("failed", 5), "state, exit code")
    expect("task 1" in workload["message"], f"it says: {workload['message']}")
    equal([t["state"] for t in workload["tasks_detail"]], ["cancelled", "failed", "cancelled"],
          "tasks")
    nothing_left(mark, 0)


# ---- cancelling ------------------------------------------------------------------------------

def test_cancel_while_pending():
    holder, _ = submit("sleep 600", gpus=8)
    running(holder)
    ident, mark = submit("sleep 600", gpus=8)
    equal(server.state(ident), "pending", "state behind the holder")
    equal(stop(ident).status, 202, "stop")
    equal(ended(ident)["state"], "cancelled", "state")
    equal(server.allocations(ident), [], "allocations")
    equal(events(ident, "task.starting"), [], "starts")
    stop(holder, grace="0s")
    ended(holder)
    nothing_left(mark, 0)


def test_cancel_while_starting():
    made = []
    for i in range(40):
        made.append(submit("exec sleep 600", preemption={"grace": "500ms"}))
        time.sleep(i % 10 * 0.003)  # before, in and after each step of the start
        equal(stop(made[-1][0]).status, 202, "stop")
    for ident, mark in made:
        equal(ended(ident)["state"], "cancelled", f"state of {ident}")
        equal(len(events(ident, "workload.ended")), 1, f"ends of {ident}")
        nothing_left(mark, 0)


def test_cancel_twice():
    ident, mark = submit("trap '' TERM; echo ready; while :; do sleep 1; done",
                         preemption={"grace": "60s"})
    wait_log(ident, "ready")
    equal(stop(ident).status, 202, "the first stop")
    equal(server.state(ident), "stopping", "state")
    equal(stop(ident).status, 202, "the second stop")
    time.sleep(0.3)
    equal(server.state(ident), "stopping", "a second stop changes nothing")
    equal(stop(ident, grace="200ms").status, 202, "a shorter grace")
    equal(ended(ident)["state"], "cancelled", "state")
    problem(stop(ident), 409, "conflict", str(ident))
    equal(len(events(ident, "task.ended")), 1, "ends of the task")
    equal(len(events(ident, "workload.ended")), 1, "ends of the workload")
    nothing_left(mark, 0)


# ---- teams and tokens ------------------------------------------------------------------------

def test_a_team_with_live_work_stays():
    server.team("leaving", gpu=1)
    ident, _ = submit("sleep 600", team="leaving")
    problem(server.call("DELETE", "/v1/teams/leaving"), 409, "conflict", "leaving")
    stop(ident, grace="0s")
    ended(ident)
    equal(server.call("DELETE", "/v1/teams/leaving").status, 204, "without work")
    equal(server.call("GET", "/v1/teams/leaving").status, 404, "afterwards")
    equal(server.state(ident), "cancelled", "what it once ran")


def test_a_team_deleted_under_a_submit():
    """Whichever comes first: never a workload whose team has gone, never a crash."""
    outcomes = set()
    for i in range(30):
        name = f"race-{i}"
        server.team(name)
        answers = {}

        def send(key, *call):
            answers[key] = server.call(*call)
        threads = [threading.Thread(target=send, args=("submit", "POST", "/v1/workloads", {
            "team": name, "cpu": "10m", "command": ["true"]})),
                   threading.Thread(target=send, args=("delete", "DELETE", f"/v1/teams/{name}"))]
        for t in threads if i % 2 else reversed(threads):
            t.start()
        for t in threads:
            t.join()
        submitted, deleted = answers["submit"].status, answers["delete"].status
        outcomes.add((submitted, deleted))
        if submitted == 201:
            # It may have run and ended before the team was deleted.
            equal(ended(answers["submit"].json["id"])["state"], "succeeded", name)
        else:
            equal(deleted, 204, f"{name}: neither was done: {answers['submit'].body}")
    print(f"# outcomes of submit and delete: {sorted(outcomes)}")
    expect(server.process.poll() is None, "the server has died")
    equal(server.get("/v1/status")["store"]["ok"], True, "store")


class EventReader(threading.Thread):
    """Follows /v1/events and resumes with Last-Event-ID whenever the connection breaks; with a
    token of its own it only waits for the server to close the stream."""

    def __init__(self, token=None):
        super().__init__(daemon=True)
        self.ids, self.ending, self.connections, self.closed = [], False, 0, False
        self.last, self.token = None, token

    def read_once(self):
        host, port = server.address.split("//")[1].rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=60 if self.token else 2)
        try:
            head = {"Accept": "text/event-stream",
                    "Authorization": f"Bearer {self.token or server.token}"}
            if self.last is not None:
                head["Last-Event-ID"] = str(self.last)
            connection.request("GET", "/v1/events", headers=head)
            reply = connection.getresponse()
            self.connections += reply.status == 200
            pending = None
            while reply.status == 200 and not self.ending:
                line = reply.readline()
                if not line:
                    return
                if line.startswith(b"id: "):
                    pending = int(line[4:])
                elif line == b"\n" and pending is not None:  # whole events only
                    self.ids.append(pending)
                    self.last, pending = pending, None
                elif line.startswith(b":"):
                    pending = None
        finally:
            connection.close()

    def run(self):
        while not self.ending:
            try:
                self.read_once()
            except TimeoutError:
                continue
            except (OSError, http.client.HTTPException):
                pass
            self.closed = True
            if self.token:
                return
            time.sleep(0.02)


def test_tokens_end_at_once_and_show_one_team():
    equal(server.call("PUT", "/v1/users/ada", {"teams": ["other"]}).status in (200, 201), True,
          "user")

    def token(**more):
        answer = server.call("POST", "/v1/tokens", {"user": "ada", **more})
        equal(answer.status, 201, answer.body)
        return answer.json
    lasting, streaming, brief = token(), token(), token(expires_in="3s")
    begun = time.monotonic()
    equal(server.call("GET", "/v1/workloads", token=brief["token"]).status, 200, "for a while")
    foreign, _ = submit("sleep 600")
    own, _ = submit("true", team="other")
    for method, path in (("GET", ""), ("POST", "/stop"), ("DELETE", ""), ("GET", "/logs"),
                         ("GET", "/explain"), ("GET", "/events"), ("GET", "/allocations")):
        answer = server.call(method, f"/v1/workloads/{foreign}{path}", token=lasting["token"])
        equal(answer.status, 404, f"{method} {path} of another team's workload")
    answer = server.call("POST", f"/v1/workloads/{foreign}/tasks/0/exec", {"command": ["true"]},
                         token=lasting["token"],
                         headers={"Upgrade": "allot-exec", "Connection": "Upgrade"})
    equal(answer.status, 404, "exec into another team's task")
    seen = server.call("GET", "/v1/workloads?limit=1000", token=lasting["token"]).json["workloads"]
    equal([w["id"] for w in seen], [own], "what a member sees")
    answer = server.call("POST", "/v1/workloads", {"team": "t", "command": ["true"]},
                         token=lasting["token"])
    equal((answer.status, answer.json["code"]), (422, "not_found"), "a submit to another team")
    reader = later["stream"] = EventReader(streaming["token"])
    reader.start()
    wait_for("the stream", lambda: reader.connections)
    for t in (lasting, streaming):
        equal(server.call("DELETE", f"/v1/tokens/{t['id']}").status, 204, "revoke")
        equal(server.call("GET", "/v1/workloads", token=t["token"]).status, 401, "revoked")
    later["revoked"] = time.monotonic()
    time.sleep(max(0, begun + 3.1 - time.monotonic()))
    equal(server.call("GET", "/v1/workloads", token=brief["token"]).status, 401, "expired")
    stop(foreign, grace="0s")
    ended(foreign)


# ---- exec ------------------------------------------------------------------------------------

def test_exec():
    ident, mark = submit("echo secret > /tmp/inside; echo ready; exec sleep 600")
    wait_log(ident, "ready")
    running(ident)
    done = server.allot("exec", str(ident), "--", "sh", "-c",
                        "cat /tmp/inside; echo wrong >&2; exit 9", check=False)
    equal((done.returncode, done.stdout, done.stderr), (9, "secret\n", "wrong\n"), "exec")
    done = server.allot("exec", str(ident), "--", "cat", stdin="a" * 300_000, check=False)
    equal((done.returncode, len(done.stdout)), (0, 300_000), "exec with input")
    done = server.allot("exec", str(ident), "--", "sh", "-c", "kill -KILL $$", check=False)
    equal(done.returncode, 137, "exec of something that is killed")
    done = server.allot("exec", str(ident), "--", "/no/such/program", check=False)
    expect(done.returncode not in (0, 1, 9), f"exec of nothing: {done}")
    # One that would go on is ended with the task.
    held = subprocess.Popen([ALLOT, "exec", str(ident), "--", "sleep", "600"],
                            env=server.environment(), stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for("the second sleep", lambda: len(marked(mark)) >= 2)
        stop(ident, grace="200ms")
        ended(ident)
        expect(held.wait(PATIENCE) != 0, "an exec that was cut off says that all was well")
    finally:
        held.kill()
    nothing_left(mark, 0)
    done = server.allot("exec", str(ident), "--", "true", check=False)
    equal(done.returncode, 125, "exec of a stopped task")
    expect("has ended" in done.stderr, f"no clear error: {done.stderr}")


# ---- a second server -------------------------------------------------------------------------

def test_the_store_belongs_to_one_server():
    done = subprocess.run([ALLOT, "server", "--listen", "127.0.0.1:0", "--data", server.data,
                           "--simulate", "8xH100"], capture_output=True, text=True, timeout=30,
                          check=False)
    expect(done.returncode not in (0, -6, -11), f"a second server: {done}")
    expect(str(server.process.pid) in done.stderr, f"the holder is not named: {done.stderr}")
    ident, _ = submit("true")
    equal(ended(ident)["state"], "succeeded", "the first goes on")


# ---- what had to wait ------------------------------------------------------------------------

def test_max_retries_are_honoured():
    ident, _ = later["retry"]
    workload = ended(ident)
    equal((workload["state"], workload["exit_code"], workload["failures"]), ("failed", 3, 2),
          "state, exit code, failures")
    said = [server.allot("logs", "--attempt", str(i), str(ident)).stdout for i in (0, 1)]
    equal(said, ["attempt 0\n", "attempt 1\n"], "attempts")
    equal(len(events(ident, "task.ended")), 2, "ends")


def test_a_service_comes_back():
    ident, _ = later["service"]
    wait_log(ident, "attempt 1")
    workload = server.wait_state(ident, "running")
    equal((workload["restarts"], workload["tasks_detail"][0]["attempt"]), (1, 1), "restarts")
    stop(ident)
    equal(ended(ident)["state"], "cancelled", "state")


def test_a_stream_of_a_revoked_token_ends():
    left = later["revoked"] + 12 * SLOW - time.monotonic()
    wait_for("the stream to be closed", lambda: later["stream"].closed, max(0.1, left))


# ---- everything at once ----------------------------------------------------------------------

class Client(threading.Thread):
    """Calls routes at random, hangs up in the middle of streams, and keeps what went wrong."""

    def __init__(self, seed, until):
        super().__init__()
        self.rng, self.until, self.calls, self.wrong = random.Random(seed), until, 0, []
        self.own, self.team = [], f"crowd-{seed}"

    def call(self, method, path, body=None, wanted=(200,), **more):
        answer = server.call(method, path, body, **more)
        self.calls += 1
        if answer.status not in wanted:
            self.wrong.append((method, path, answer.status, answer.body[:200]))
        return answer

    def submit(self):
        spec = {"team": self.team, "cpu": "10m", "gpu": self.rng.choice((0.25, 0.5)),
                "class": self.rng.choice(("training", "batch", "development")),
                "preemption": {"grace": "100ms"},
                "command": ["sh", "-c", self.rng.choice(("true", "exit 1", "sleep 0.2",
                                                         "echo hello; exec sleep 30"))]}
        answer = self.call("POST", "/v1/workloads", {"workloads": [spec] * self.rng.choice((1, 3))},
                           (201,))
        if answer.status == 201:
            self.own += [w["id"] for w in answer.json["workloads"]]

    def stop_one(self):
        if self.own:
            self.call("POST", f"/v1/workloads/{self.rng.choice(self.own)}/stop", {},
                      (202, 409))

    def look(self):
        ident = self.rng.choice(self.own) if self.own else 1
        self.call("GET", self.rng.choice((
            "/v1/workloads?limit=50", "/v1/teams", "/v1/nodes", "/v1/usage", "/v1/status",
            "/v1/devices", "/v1/events?limit=100", "/v1/tokens", f"/v1/workloads/{ident}",
            f"/v1/workloads/{ident}/explain", f"/v1/workloads/{ident}/explain",
            f"/v1/workloads/{ident}/events", f"/v1/workloads/{ident}/logs",
            f"/v1/workloads/{ident}/allocations")))

    def hang_up(self):
        host, port = server.address.split("//")[1].rsplit(":", 1)
        ident = self.rng.choice(self.own) if self.own else 1
        connection = http.client.HTTPConnection(host, int(port), timeout=5)
        path = self.rng.choice(("/v1/events", f"/v1/workloads/{ident}/logs?follow=true"))
        connection.request("GET", path, headers={"Authorization": f"Bearer {server.token}"})
        if connection.getresponse().status != 200:
            self.wrong.append(path)
        time.sleep(self.rng.uniform(0, 0.1))
        connection.close()
        self.calls += 1

    def exec_one(self):
        if self.own:
            subprocess.run([ALLOT, "exec", str(self.rng.choice(self.own)), "--", "true"],
                           env=server.environment(), capture_output=True, timeout=30, check=False)

    def change(self):
        self.call("PUT", f"/v1/teams/{self.team}", {"guarantee": {"gpu": self.rng.randrange(3)}})
        answer = self.call("POST", "/v1/tokens", {"expires_in": "1h"}, (201,))
        self.call("GET", "/v1/status", token=answer.json["token"])
        self.call("DELETE", f"/v1/tokens/{answer.json['id']}", wanted=(204,))

    def run(self):
        deeds = [self.submit] * 3 + [self.look] * 6 + [self.stop_one] * 2 + [
            self.hang_up, self.exec_one, self.change]
        try:
            self.call("PUT", f"/v1/teams/{self.team}", {}, (201,))
            while time.monotonic() < self.until:
                self.rng.choice(deeds)()
        except Exception as e:  # it is told by the test
            self.wrong.append(repr(e))


def test_a_crowd_of_clients():
    clients = [Client(seed, time.monotonic() + 3) for seed in range(12)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    equal([w for client in clients for w in client.wrong], [], "what went wrong")
    own = [ident for client in clients for ident in client.own]
    print(f"# {sum(client.calls for client in clients)} calls, {len(own)} workloads")
    for ident in own:
        stop(ident, grace="0s")
    for ident in own:
        ended(ident)
        equal(len(events(ident, "workload.ended")), 1, f"ends of {ident}")
    check_devices([row for ident in own for row in server.allocations(ident)])


# ---- killed servers and supervisors ----------------------------------------------------------

def supervisor_of(ident, attempt):
    for pid in supervisors(server.folder):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
            if os.path.basename(f.read().split(b"\0")[1].decode()) == f"{ident}.0.{attempt}":
                return pid
    raise Failure(f"attempt {attempt} of {ident} has no supervisor")


def test_a_killed_supervisor():
    ident, mark = submit("(sleep 600) & sleep 600", gpus=1)
    running(ident)
    wait_for("its processes", lambda: len(marked(mark)) >= 2)
    first = set(marked(mark))
    os.kill(supervisor_of(ident, 0), signal.SIGKILL)

    def again():
        task = server.workload(ident)["tasks_detail"][0]
        return task["attempt"] == 1 and task["state"] == "running"
    wait_for("the next attempt", again)
    equal(first & set(marked(mark)), set(), "processes of the first attempt")
    workload = server.workload(ident)
    equal((workload["state"], workload["failures"], workload["restarts"]), ("running", 0, 1),
          "state, failures, restarts")
    equal(len(events(ident, "task.lost")), 1, "events that it was lost")

    # And the same while no server looks.
    server.kill()
    os.kill(supervisor_of(ident, 1), signal.SIGKILL)
    server.start()
    wait_for("the attempt after that", lambda: server.workload(ident)["tasks_detail"][0]
             ["attempt"] == 2 and server.state(ident) == "running")
    equal(server.workload(ident)["failures"], 0, "failures")
    equal(len(events(ident, "task.lost")), 2, "events that it was lost")
    rows = server.allocations(ident)
    check_devices(rows)
    equal([r["end"] is None for r in rows], [False, False, True], "open allocations")
    stop(ident, grace="0s")
    ended(ident)
    nothing_left(mark, 0)


def test_an_acknowledged_stop_survives_a_crash():
    for _ in range(3):
        ident, mark = submit("trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done")
        wait_log(ident, "ready")
        equal(stop(ident).status, 202, "stop")
        server.kill()
        server.start()
        expect(server.state(ident) in ("stopping", "cancelled"), "the stop was forgotten")
        equal(ended(ident)["state"], "cancelled", "state")
        nothing_left(mark, 0)


def test_events_resume_without_gap_or_repetition():
    reader = EventReader()
    reader.last = server.get("/v1/events?limit=1")["next"]
    first = reader.last
    reader.start()
    for _ in range(3):
        made = [submit("true")[0] for _ in range(15)]
        server.kill()
        server.start()
        for ident in made:
            ended(ident)
    newest = server.get("/v1/events?limit=1")["next"]
    wait_for("the reader to have all of them", lambda: reader.last and reader.last >= newest,
             PATIENCE)
    reader.ending = True
    reader.join()
    expect(reader.connections >= 4, f"only {reader.connections} connections")
    stored, after = [], first
    while page := server.get(f"/v1/events?after={after}&limit=1000")["events"]:
        stored += [e["seq"] for e in page]
        after = page[-1]["seq"]
    equal(reader.ids, [s for s in stored if s <= reader.last], "events by the stream")
    equal(stored, list(range(first + 1, first + 1 + len(stored))), "numbers of stored events")


def test_logs_follow_across_a_restart():
    script = "i=0; while [ $i -lt 60 ]; do echo line $i; i=$((i+1)); sleep 0.05; done"
    ident, _ = submit(script)
    follower = subprocess.Popen([ALLOT, "logs", "-f", str(ident)], env=server.environment(),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(2):
            time.sleep(0.7)
            server.kill()
            time.sleep(0.2)
            server.start()
        out, err = follower.communicate(timeout=30)
    finally:
        follower.kill()
    equal(out.splitlines(), [f"line {i}" for i in range(60)], f"lines ({err})")
    equal(follower.returncode, 0, f"exit code of the follower: {err}")


def test_drain():
    name = node()["name"]
    held, _ = submit("sleep 600", gpus=1)
    running(held)
    server.allot("node", "drain", name)
    waiting, _ = submit("sleep 600", gpus=1)
    time.sleep(0.5)
    equal((server.state(held), server.state(waiting)), ("running", "pending"), "while drained")
    why = server.get(f"/v1/workloads/{waiting}/explain")
    expect("drain" in json.dumps(why), f"the reason is not named: {why}")
    server.kill()
    server.start()
    time.sleep(0.5)
    equal((server.state(held), server.state(waiting)), ("running", "pending"), "after a crash")
    server.allot("node", "undrain", name)
    server.wait_state(waiting, "running")
    for ident in (held, waiting):
        stop(ident, grace="0s")
        ended(ident)


# ---- pages -----------------------------------------------------------------------------------

def test_pages_of_a_thousand():
    server.allot("node", "drain", node()["name"])
    batch = [{"team": "t", "cpu": "10m", "command": ["true"]} for _ in range(1000)]
    answer = server.call("POST", "/v1/workloads", {"workloads": batch})
    wanted = [w["id"] for w in answer.json["workloads"]]
    ending = threading.Event()

    def more():
        while not ending.is_set():
            submit("true")
    others = threading.Thread(target=more)
    others.start()
    try:
        seen, before = [], ""
        while True:
            page = server.get(f"/v1/workloads?state=pending&limit=37{before}")
            seen += [w["id"] for w in page["workloads"]]
            if not page.get("next"):
                break
            before = f"&before={page['next']}"
    finally:
        ending.set()
        others.join()
    equal(len(seen), len(set(seen)), "ids that were shown twice")
    equal(sorted(set(wanted) - set(seen)), [], "ids that were not shown")
    equal(seen, sorted(seen, reverse=True), "newest first")


def test_stop():
    wait_for("the supervisors of tasks that have all ended to go",
             lambda: not supervisors(server.folder), PATIENCE)
    equal(server.stop(), 0, "exit status of the server")
    log = server.log()
    for word in ("error", "Sanitizer"):
        lines = [line for line in log.splitlines() if f" {word} " in line or "Sanitizer" in line]
        equal(lines, [], f"what the server logged as {word}")
    server.close()


# ---- the wall clock --------------------------------------------------------------------------

class Clock:
    """A server whose wall clock can be set."""

    def __init__(self):
        preload = os.path.join(BUILD, "tests", "e2e", "libwallshift.so")
        if not os.path.exists(preload):
            raise Failure(f"{preload} was not built")
        self.server = Server(simulate="8xH100")
        self.path = os.path.join(self.server.folder, "shift")
        # ASan wants to come first, for a reason that does not matter to one function.
        asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        self.server.env = {"LD_PRELOAD": preload, "WALLSHIFT": self.path, "ASAN_OPTIONS": asan}
        self.set(0)

    def set(self, seconds):
        with open(self.path + ".new", "w") as f:
            f.write(str(seconds))
        os.rename(self.path + ".new", self.path)


def run_over_a_jump(clock, shift):
    """A job with a limit of 3 s, a jump of the clock, and a crash, all at once."""
    s = clock.server
    ident, _ = submit("sleep 600", on=s, gpus=1, max_run_time="3s", preemption={"grace": "1s"})
    running(ident, on=s)
    begun = time.monotonic()
    clock.set(shift)
    quick = [submit("sleep 0.2", on=s, gpus=1)[0]]
    ended(quick[0], on=s)
    s.kill()
    s.start()
    quick.append(submit("sleep 0.2", on=s, gpus=1)[0])
    workload = ended(ident, on=s)
    took = time.monotonic() - begun
    expect(2.5 < took < 3.5 + SLOW, f"a limit of 3 s took {took:.2f} s (clock set by {shift} s)")
    expect("max_run_time" in workload["message"], f"it says: {workload['message']}")
    ran = ms(workload["ended_at"]) - ms(workload["started_at"])
    expect(2900 < ran < 3500 + 1000 * SLOW, f"it is recorded with {ran} ms")
    ended(quick[1], on=s)
    return [ident, *quick]


def test_the_clock_is_set_back_and_forward():
    clock = Clock()
    s = clock.server
    try:
        s.start()
        s.team("t", gpu=8)
        idents = []
        for shift in (-3600, 3600, 0):
            idents += run_over_a_jump(clock, shift)
        workloads = [s.workload(i) for i in idents]
        for field in ("submitted_at", "started_at"):
            times = [ms(w[field]) for w in workloads]
            equal(times, sorted(times), f"order of {field}")
        rows = [row for i in idents for row in s.allocations(i)]
        check_devices(rows)
        lengths = [row["end"] - row["begin"] for row in rows]
        expect(all(0 < n < 5000 * SLOW for n in lengths), f"lengths of allocations: {lengths}")
        stamps = [ms(e["time"]) for e in s.get("/v1/events?after=0&limit=1000")["events"]]
        equal(stamps, sorted(stamps), "order of the events' times")
    finally:
        s.close()


# ---- disks -----------------------------------------------------------------------------------

@contextlib.contextmanager
def server_on(*mount):
    """A server whose data folder is a file system of its own."""
    s = Server(simulate="8xH100")
    os.makedirs(s.data)
    os.chmod(s.folder, 0o755)
    mounted = False
    try:
        done = subprocess.run(["mount", *mount, s.data], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise tap.Skip(f"nothing can be mounted here: {done.stderr.strip()}")
        mounted = True
        yield s
    finally:
        if s.process and s.process.poll() is None:
            s.kill()
        for pid in supervisors(s.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if mounted:
            subprocess.run(["umount", "-l", s.data], check=True)
        s.close()


def fill(path):
    with open(path, "wb", buffering=0) as f:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while f.write(b"\0" * size) == size:
                    pass


def refused(s):
    """Submits until the store has no room even in the pages that it reuses."""
    def full():
        answer = s.call("POST", "/v1/workloads", {
            "team": "t", "cpu": "10m", "gpus": 8, "command": ["true"],
            "env": {"FILL": "x" * 100_000}})
        return answer if answer.status != 201 else None
    return wait_for("the disk to be full", full)


def test_a_full_disk():
    with server_on("-t", "tmpfs", "-o", "size=24m", "tmpfs") as s:
        s.start()
        s.team("t", gpu=8)
        short, short_mark = submit("while [ ! -e /tmp/go ]; do sleep 0.1; done; exit 5", on=s,
                                   gpus=1)
        long, long_mark = submit("exec sleep 600", on=s, gpus=1)
        for ident in (short, long):
            running(ident, on=s)
        processes = wait_for("its process", lambda: marked(long_mark))
        filler = os.path.join(s.data, "filler")
        fill(filler)
        problem(refused(s), 503, "unavailable", "space")
        begun = time.monotonic()
        done = s.allot("submit", "--team", "t", "--env", "FILL=" + "x" * 100_000, "--", "true",
                       check=False)
        expect(time.monotonic() - begun < 3 * SLOW, "a clear answer was not taken as one")
        expect(done.returncode not in (0, -6, -11), f"a submit to a full disk: {done}")
        expect("no space left" in done.stderr, f"no clear error: {done.stderr}")
        # A task ends meanwhile.
        s.allot("exec", str(short), "--", "touch", "/tmp/go")
        nothing_left(short_mark)
        gone = time.time()
        equal(marked(long_mark), processes, "the other task")
        equal(s.get("/v1/workloads?limit=1000")["workloads"] != [], True, "reading still works")
        time.sleep(1.5)
        expect(s.process.poll() is None, "the server has died of a full disk")
        # So does the server; on a full disk it comes back, or says why it cannot.
        s.kill()
        try:
            s.start(PATIENCE)
        except Failure as e:
            expect("space" in str(e), f"it does not start, and does not say why: {e}")
        os.unlink(filler)
        if s.process.poll() is not None:
            s.start()
        workload = ended(short, on=s)
        equal((workload["state"], workload["exit_code"]), ("failed", 5), "state, exit code")
        rows = s.allocations(short)
        equal(len(rows), 1, "allocations")
        expect(rows[0]["end"] and rows[0]["end"] <= gone * 1000 + 1000, f"its hold: {rows}")
        equal([r["end"] is None for r in s.allocations(long)], [True], "the other's allocation")
        equal((s.state(long), marked(long_mark)), ("running", processes), "the other task")
        check_devices(s.allocations(short) + s.allocations(long))
        ident, _ = submit("exit 0", on=s, gpus=1)
        equal(ended(ident, on=s)["state"], "succeeded", "new work")
        equal(s.get("/v1/status")["store"]["ok"], True, "store")


def test_a_full_disk_is_waited_out():
    """As above, without a crash: the server itself goes on when there is room again."""
    with server_on("-t", "tmpfs", "-o", "size=24m", "tmpfs") as s:
        s.start()
        s.team("t", gpu=8)
        made = [submit(f"sleep 2; exit {i}", on=s, gpus=1) for i in range(1, 5)]
        for ident, _ in made:
            running(ident, on=s)
        filler = os.path.join(s.data, "filler")
        fill(filler)
        problem(refused(s), 503, "unavailable", "space")
        for _, mark in made:
            nothing_left(mark)
        gone = time.time()
        time.sleep(1.5)
        os.unlink(filler)
        for code, (ident, _) in enumerate(made, 1):
            workload = ended(ident, on=s)
            equal((workload["state"], workload["exit_code"]), ("failed", code), "state, exit code")
            equal(len(events(ident, "task.ended", on=s)), 1, "ends")
            rows = s.allocations(ident)
            equal(len(rows), 1, "allocations")
            expect(rows[0]["end"] and rows[0]["end"] <= gone * 1000 + 1000, f"its hold: {rows}")
        ident, _ = submit("exit 0", on=s, gpus=1)
        equal(ended(ident, on=s)["state"], "succeeded", "new work")
        equal(s.stop(), 0, "exit status of the server")


def test_a_disk_that_turns_read_only():
    with tempfile.NamedTemporaryFile(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as f:
        f.truncate(32 << 20)
        try:
            done = subprocess.run(["mkfs.ext4", "-q", "-F", f.name], capture_output=True,
                                  text=True, check=False)
        except FileNotFoundError:
            raise tap.Skip("mkfs.ext4 is not installed") from None
        if done.returncode != 0:
            raise tap.Skip(f"no file system can be made: {done.stderr.strip()}")
        read_only_disk(f.name)


def read_only_disk(image):
    with server_on("-o", "loop,errors=remount-ro", image) as s:
        s.start()
        s.team("t", gpu=8)
        ident, mark = submit("exec sleep 600", on=s, gpus=1)
        running(ident, on=s)
        processes = wait_for("its process", lambda: marked(mark))
        # What the kernel does with a file system that it finds damaged.
        subprocess.run(["mount", "-o", "remount,abort", s.data], capture_output=True, check=False)
        answer = s.call("POST", "/v1/workloads", {"team": "t", "command": ["true"]})
        problem(answer, 503, "unavailable")
        done = s.allot("submit", "--team", "t", "--", "true", check=False)
        expect(done.returncode not in (0, -6, -11), f"a submit to a read-only disk: {done}")
        expect("store" in done.stderr, f"no clear error: {done.stderr}")
        time.sleep(1)
        equal((s.state(ident), marked(mark)), ("running", processes), "the running task")
        equal(s.stop(), 0, "exit status of the server")
        equal(marked(mark), processes, "the task without a server")
        try:
            s.start(PATIENCE)
            raise Failure("a server started on a read-only store")
        except Failure as e:
            expect("read-only" in str(e).lower(), f"it does not say why: {e}")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
