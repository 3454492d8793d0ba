#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=120
"""Labels of a node and topology levels, from the server's options to the refusal of a workload."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import ALLOT, Server, equal, expect  # noqa: E402

server = Server(simulate="8xH100", options=["--label", "zone=a", "--label", "rack=r7",
                                            "--topology", "zone,rack,host"])


def submit(gpus, tasks=1, **more):
    return server.call("POST", "/v1/workloads",
                       {"team": "default", "gpus": gpus, "tasks": tasks,
                        "command": ["sleep", "60"], **more})


def test_the_node_has_its_labels():
    server.start()
    node = server.get("/v1/nodes")["nodes"][0]
    equal(node["labels"], {"host": node["name"], "rack": "r7", "zone": "a"}, "labels")


def test_a_gang_runs_within_one_rack():
    answer = submit(2, tasks=2, topology={"required": "rack"})
    equal(answer.status, 201, f"{answer.body}")
    server.wait_state(answer.json["id"], "running")


def test_a_request_names_labels():
    answer = submit(1, node_labels={"rack": "r7"})
    server.wait_state(answer.json["id"], "running")
    answer = submit(1, node_labels={"rack": "r8"})
    expect(400 <= answer.status < 500, f"no node has that label: {answer.body}")
    expect("label rack=r8" in answer.json["detail"] and "rack=r7" in answer.json["remedy"],
           f"the label is not named: {answer.body}")


def test_a_level_that_does_not_exist_is_refused():
    for topology in ({"required": "pod"}, {"preferred": "pod"}):
        answer = submit(1, topology=topology)
        expect(400 <= answer.status < 500, f"{answer.body}")
        expect("pod" in answer.json["detail"] and "zone, rack, host" in answer.json["detail"],
               f"the levels are not named: {answer.json['detail']}")


def test_it_is_so_after_a_restart():
    server.kill()
    server.start()
    answer = submit(1, tasks=2, topology={"required": "host"})
    equal(answer.status, 201, f"{answer.body}")
    server.wait_state(answer.json["id"], "running")


def test_wrong_options():
    for options, part in ((["--label", "rack"], "KEY=VALUE"), (["--label", "=r7"], "not a label"),
                          (["--label", "a=1", "--label", "a=2"], "twice"),
                          (["--topology", "zone,,host"], "not a label"),
                          (["--topology", "zone,zone"], "twice"),
                          (["--topology", ",".join(f"l{i}" for i in range(17))], "too many")):
        done = subprocess.run([ALLOT, "server", "--data", "/proc/nowhere", *options],
                              capture_output=True, text=True, timeout=30, check=False)
        expect(done.returncode == 2 and part in done.stderr, f"{options}: {done}")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
