#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A machine that goes down under its tasks, stays off for a while, and comes back.

What is told apart is the boot id alone: the records of the tasks and the store are given one of
an earlier boot while the server is away.
"""
import os
import re
import sqlite3
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import Server, equal, expect, supervisors, wait_for  # noqa: E402

OFF_S = 5  # the machine is off
RUN_S = 2  # one task goes on without a server

server = Server(simulate="8xH100")
jobs = {}


def path(job, name):
    return f"{server.data}/tasks/{job}.0.0/{name}"


def of_an_earlier_boot(file):
    with open(file, "rb") as f:
        data = f.read()
    data, count = re.subn(rb"\0boot_id=[^\0]*\0", b"\0boot_id=an-earlier-one\0", data)
    equal(count, 1, f"boot ids in {file}")
    with open(file, "r+b") as f:  # the same file: a lock on it may be held
        f.write(data)
        f.truncate()


def no_supervisor():
    for pid in supervisors(server.folder):
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass
    return not supervisors(server.folder)


def test_the_machine_goes_down():
    if os.geteuid() != 0:
        raise tap.Skip("tasks are started by root")
    server.start()
    jobs["lost"] = server.submit(team="default", command=["sleep", "600"], gpus=1,
                                 max_retries=3)["id"]
    wait = "until [ -e $ALLOT_CHECKPOINT_DIR/go ]; do sleep 0.1; done"
    jobs["ends"] = server.submit(team="default", command=["sh", "-c", wait], gpus=1)["id"]
    for job in jobs.values():
        wait_for("the task to run", lambda j=job: server.workload(j)["started_at"])
    server.kill()
    time.sleep(RUN_S)
    with open(f"{server.data}/checkpoints/{jobs['ends']}/go", "w"):
        pass
    wait_for("the end of one task", lambda: os.path.exists(path(jobs["ends"], "exit")))
    wait_for("the supervisors to die", no_supervisor)
    jobs["down_ms"] = time.time() * 1000
    time.sleep(OFF_S)


def test_it_comes_back():
    of_an_earlier_boot(path(jobs["lost"], "launch"))
    of_an_earlier_boot(path(jobs["ends"], "exit"))
    with sqlite3.connect(server.data + "/allot.db") as db:
        changed = db.execute("UPDATE meta SET value = 'an-earlier-one' WHERE key = 'boot_id'")
        equal(changed.rowcount, 1, "boot ids in the store")
    db.close()
    server.start()
    server.wait_state(jobs["ends"], "succeeded")
    wait_for("the other to run again", lambda: len(server.allocations(jobs["lost"])) == 2)


def test_nothing_is_metered_while_the_machine_was_off():
    held = server.allocations(jobs["lost"])[0]
    expect(held["begin"] <= held["end"] <= jobs["down_ms"], f"{held}, off at {jobs['down_ms']}")


def test_what_had_ended_is_metered_for_as_long_as_it_ran():
    held = server.allocations(jobs["ends"])
    equal(len(held), 1, "holds")
    ran_ms = held[0]["end"] - held[0]["begin"]
    expect(ran_ms >= RUN_S * 1000, f"{ran_ms} ms")
    expect(held[0]["end"] <= jobs["down_ms"], f"{held}, off at {jobs['down_ms']}")


def test_a_second_restart_changes_nothing():
    before = [server.allocations(jobs[name]) for name in ("lost", "ends")]
    server.kill()
    server.start()
    wait_for("the task", lambda: server.state(jobs["lost"]) == "running")
    equal([server.allocations(jobs[name]) for name in ("lost", "ends")], before, "holds")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
