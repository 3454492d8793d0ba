#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Folders of running tasks that lose or damage their files while the server is away."""
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import Server, equal, expect, supervisors, wait_for  # noqa: E402

server = Server(simulate="8xH100")
MARK = "7171.5"


def processes():
    """How many of the tasks' commands run on this machine."""
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                count += f.read() == b"sleep\0" + MARK.encode() + b"\0"
        except OSError:
            pass
    return count


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def test_start():
    if os.geteuid() != 0:
        raise tap.Skip("tasks are started by root")
    server.start()
    server.team("red", gpu=8)


def test_nothing_is_believed_and_nothing_runs_twice():
    if server.get("/v1/nodes")["nodes"][0]["limits"] == "none":
        raise tap.Skip("no control groups here")
    jobs = [server.submit(team="red", command=["sleep", MARK], gpus=1, max_retries=3)["id"]
            for _ in range(5)]
    wait_for("the tasks", lambda: processes() == len(jobs))
    folder = [f"{server.data}/tasks/{job}.0.0" for job in jobs]
    server.kill()
    write(folder[0] + "/launch", b"\xff" * 3000)
    write(folder[1] + "/exit", b"")
    write(folder[2] + "/exit", b"kind=exited\0rubbish\xff")
    os.unlink(folder[3] + "/launch")
    shutil.rmtree(folder[4], ignore_errors=True)
    server.start()
    for number, job in enumerate(jobs):
        restarts = 0 if number < 3 else 1
        wait_for(f"workload {number} to run",
                 lambda j=job, r=restarts: (w := server.workload(j))["state"] == "running"
                 and w["started_at"] and w["restarts"] == r)
    wait_for("one process for each", lambda: processes() == len(jobs))
    for job in jobs:
        server.call("POST", f"/v1/workloads/{job}/stop", {"grace": "0s"})
    for job in jobs:
        wait_for("the end", lambda j=job: server.state(j) in ("cancelled", "failed"))
    wait_for("no process", lambda: processes() == 0 and not supervisors(server.folder))
    held = [d for d in server.get("/v1/nodes")["nodes"][0]["devices"] if d.get("holders")]
    equal(held, [], "devices that are held")


def test_the_server_is_well():
    expect(server.alive(), "it does not answer")
    equal(server.stop(), 0, "exit status")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
