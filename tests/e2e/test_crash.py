#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=400
"""Kills the server with -9 at random points of a running mix and checks that nothing is lost,
nothing runs twice and metering has neither gap nor overlap.

usage: test_crash.py [KILLS [SEED]]

200 kills unless said; 25 of a server that was built with a sanitizer, which starts slowly.
"""
import json
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import (SANITIZED, Server, check_devices, equal, expect,  # noqa: E402
                         supervisors, wait_for)

KILLS = int(sys.argv[1]) if len(sys.argv) > 1 else 25 if SANITIZED else 200
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
FINAL = ("succeeded", "failed", "cancelled")


class Mix:
    """Submits and stops work until told to end; remembers what was acknowledged."""

    def __init__(self, server, rng):
        self.server, self.rng = server, rng
        self.acknowledged, self.stopped = [], set()
        self.ending = threading.Event()
        self.refused = 0
        self.traces = os.path.join(server.folder, "traces")
        os.makedirs(self.traces)
        os.chmod(self.traces, 0o777)
        os.chmod(server.folder, 0o755)

    def spec(self, number):
        trace = os.path.join(self.traces, str(number))
        seconds = self.rng.choice((0, 0, 0.05, 0.2, 0.6))
        # One line at the start and one at the end of each attempt that runs. What has its last
        # line will succeed: between the two no signal can come.
        script = (f'echo "start $ALLOT_RANK $ALLOT_RESTART_COUNT" >> {trace}.$ALLOT_RANK; '
                  f'sleep {seconds}; trap "" TERM; '
                  f'echo "end $ALLOT_RANK $ALLOT_RESTART_COUNT" >> {trace}.$ALLOT_RANK')
        spec = {"name": f"mix-{number}", "team": self.rng.choice(("red", "blue")),
                "class": self.rng.choice(("training", "training", "batch", "development")),
                "command": ["sh", "-c", script], "cpu": "100m", "workdir": self.traces,
                "preemption": {"grace": "5s"}}
        form = self.rng.randrange(4)
        if form == 0:
            spec["gpu"] = self.rng.choice((0.25, 0.5))
        else:
            spec["gpus"] = self.rng.choice((1, 1, 2, 4))
        if form == 3:
            spec["tasks"], spec["gpus"] = 3, 1
        return spec

    def run(self):
        number = 0
        while not self.ending.is_set():
            number += 1
            try:
                live = self.server.call("POST", "/v1/workloads", self.spec(number), timeout=5)
                if live.status == 201:
                    self.acknowledged.append((live.json["id"], number))
                else:
                    self.refused += 1
                if self.acknowledged and self.rng.random() < 0.05:
                    ident, _ = self.rng.choice(self.acknowledged)
                    self.stopped.add(ident)  # it may be carried out although no answer comes
                    self.server.call("POST", f"/v1/workloads/{ident}/stop", {}, timeout=5)
            except (OSError, ValueError):
                time.sleep(0.01)  # the server is away: not acknowledged
            time.sleep(self.rng.uniform(0, 0.08))


state = {}


def test_kill_at_random_points():
    rng = random.Random(SEED)
    server = state["server"] = Server(simulate="8xH100")
    server.start()
    server.team("red", gpu=4)
    server.team("blue", gpu=4)
    mix = state["mix"] = Mix(server, random.Random(SEED + 1))
    client = threading.Thread(target=mix.run)
    client.start()
    begun, slowest = time.monotonic(), 0.0
    try:
        for _ in range(KILLS):
            time.sleep(rng.uniform(0, 0.25))
            server.kill()
            start = time.monotonic()
            server.start()
            slowest = max(slowest, time.monotonic() - start)
    finally:
        mix.ending.set()
        client.join()
    print(f"# {KILLS} kills in {time.monotonic() - begun:.0f} s, {len(mix.acknowledged)} "
          f"workloads acknowledged, {mix.refused} refused, slowest start {slowest:.2f} s")
    expect(len(mix.acknowledged) > KILLS, "too little work to make the kills worth while")


def all_workloads(server):
    rows, before = [], ""
    while True:
        page = server.get(f"/v1/workloads?limit=1000{before}")
        rows += page["workloads"]
        if not page.get("next"):
            return rows
        before = f"&before={page['next']}"


def test_everything_acknowledged_ends():
    server, mix = state["server"], state["mix"]

    def all_ended():
        return not server.get("/v1/workloads?state=live&limit=1")["workloads"]
    wait_for("all workloads to end", all_ended, 180)
    known = state["rows"] = {w["id"]: w for w in all_workloads(server)}
    lost = [i for i, _ in mix.acknowledged if i not in known]
    equal(lost, [], "acknowledged workloads that are lost")
    wrong = [(i, w["state"], w["message"]) for i, w in known.items()
             if w["state"] not in FINAL or w["state"] == "failed" or
             (w["state"] == "cancelled" and i not in mix.stopped)]
    equal(wrong, [], "workloads that ended in a way nobody asked for")


def trace_lines(mix, number, rank):
    try:
        with open(os.path.join(mix.traces, f"{number}.{rank}")) as f:
            return f.read().splitlines()
    except FileNotFoundError:
        return []


def history(ident, rank):
    events = state["server"].get(f"/v1/workloads/{ident}/events")["events"]
    return [f"{e['time'][14:23]} {e['message']}" for e in events if e.get("task") in (None, rank)]


def test_nothing_ran_twice():
    mix, known = state["mix"], state["rows"]
    twice, unfinished = [], []
    for ident, number in mix.acknowledged:
        for rank in range(known[ident]["tasks"]):
            lines = trace_lines(mix, number, rank)
            starts = [line for line in lines if line.startswith("start")]
            if len(starts) != len(set(starts)):
                twice.append((ident, lines))
            ends = [line for line in lines if line.startswith("end")]
            if known[ident]["state"] == "succeeded" and len(ends) != 1:
                unfinished.append((ident, rank, lines, history(ident, rank)))
    equal(twice, [], "attempts that started twice")
    equal(unfinished, [], "succeeded tasks that did not run to their end exactly once")


def test_metering_is_exact():
    server, known = state["server"], state["rows"]
    rows = [row for ident in known for row in server.allocations(ident)]
    expect(rows, "nothing was metered")
    open_rows = [row for row in rows if row["end"] is None]
    equal(open_rows, [], "open allocations of ended workloads")
    total = check_devices(rows)
    usage = server.get("/v1/usage?from=2020-01-01T00:00:00Z")["teams"]
    equal(sum(u["allocated_milli_gpu_ms"] for u in usage), total, "usage of all teams")


def test_no_process_is_left():
    server = state["server"]
    wait_for("all supervisors to be gone", lambda: not supervisors(server.folder))
    equal(server.stop(), 0, "exit status of the server")
    server.close()


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        if "server" in state:
            state["server"].close()
