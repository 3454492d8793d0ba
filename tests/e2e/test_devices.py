#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=120
"""A machine whose devices are others after a restart: those that are gone are never handed out."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import Server, equal, expect, wait_for  # noqa: E402

server = Server(simulate="8xH100")
held = []


def submit(gpu_type, gpus):
    return server.call("POST", "/v1/workloads", {"team": "default", "gpus": gpus,
                                                 "gpu_type": [gpu_type],
                                                 "command": ["sleep", "60"]})


def node():
    return server.get("/v1/nodes")["nodes"][0]


def undrain():
    return server.call("POST", f"/v1/nodes/{node()['name']}/undrain")


def test_tasks_keep_the_devices_that_they_hold():
    server.start()
    held.append(submit("H100", 5).json["id"])
    # It runs from the decision on; the task a moment later, which is what is to be found again.
    wait_for("the task to run", lambda: server.workload(held[0])["started_at"])
    server.kill()
    server.simulate = "4xA100"
    server.start()
    equal(server.state(held[0]), "running", "the task that holds five")
    # It answers from its store at once, and hears of its devices a moment later.
    wait_for("the node to be drained, as its devices are others", lambda: node()["drained"])


def test_it_cannot_be_undrained():
    answer = undrain()
    equal(answer.status, 409, f"{answer.body}")
    expect("other devices" in answer.json["detail"], f"{answer.body}")
    server.allot("stop", str(held[0]), "--grace", "100ms")
    server.wait_state(held[0], "cancelled")
    equal(undrain().status, 409, "they are others still")


def test_after_another_start_it_has_its_new_devices():
    server.kill()
    server.start()
    equal(undrain().status, 200, "nothing holds the former ones")
    expect(submit("H100", 1).status >= 400, "a device that is gone")
    answer = submit("A100", 4)
    equal(answer.status, 201, f"{answer.body}")
    server.wait_state(answer.json["id"], "running")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
