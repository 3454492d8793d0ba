#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=120
"""A tree of teams as companies have it: departments above teams, guarantees at the leaves only."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import Server, equal, expect  # noqa: E402

server = Server(simulate="8xH100")


def production(team, **more):
    return server.call("POST", "/v1/workloads", {"team": team, "class": "production", "gpus": 1,
                                                 "command": ["sleep", "60"], **more})


def test_what_is_promised_below_holds_above():
    server.start()
    server.team("it")
    server.team("ml", parent="it")
    server.team("vision", gpu=2, parent="ml")
    answer = production("vision")
    equal(answer.status, 201, f"production within the leaf's guarantee: {answer.body}")
    server.wait_state(answer.json["id"], "running")


def test_gpus_come_with_their_cpu():
    answer = production("vision", cpu="1", memory="64MiB")
    equal(answer.status, 201, f"production that names CPU and memory: {answer.body}")
    server.wait_state(answer.json["id"], "running")


def test_more_than_the_guarantee_waits():
    answer = production("vision")
    equal(answer.status, 201, "it could start later")
    equal(server.state(answer.json["id"]), "pending", "a third GPU of production")
    reason = server.get(f"/v1/workloads/{answer.json['id']}/explain")["reason"]
    equal(reason, "team_guarantee", "why it waits")


def test_a_team_without_any_is_told():
    server.team("guests", parent="it")
    answer = production("guests")
    expect(answer.status >= 400 and "guests" in answer.json["detail"], f"{answer.body}")


def test_a_team_that_moves_takes_its_promise_along():
    server.team("hr")
    server.team("vision", gpu=2, parent="hr")
    server.team("speech", gpu=1, parent="ml")
    answer = production("speech")
    equal(answer.status, 201, f"production of speech: {answer.body}")
    server.wait_state(answer.json["id"], "running")


def names(team, *more):
    return {w["team"] for w in server.allot_json("ps", "--all", "--team", team, *more)["workloads"]}


def test_a_department_is_asked_for_with_all_below_it():
    equal(names("hr"), {"vision"})
    equal(names("it"), {"speech"})
    equal(names("guests"), set())
    events = server.get("/v1/events?team=hr&limit=1000")["events"]
    expect("vision" in {e["team"] for e in events}, f"{events}")
    expect("speech" not in {e["team"] for e in events}, f"{events}")
    refused = production("ml")
    equal(refused.status, 400, f"{refused.body}")
    expect("speech" in refused.json["remedy"], f"{refused.json}")
    # Who belongs to a team below sees that alone.
    server.allot("user", "set", "ann", "--team", "speech")
    token = server.allot_json("token", "create", "ann")["token"]
    rows = server.call("GET", "/v1/workloads?team=it", token=token).json["workloads"]
    equal({w["team"] for w in rows}, {"speech"})
    equal(server.call("GET", "/v1/workloads?team=hr", token=token).json["workloads"], [])
    counts = server.call("GET", "/v1/status", token=token).json
    equal((counts["pending"], counts["running"]), (0, 1), "of its own teams")
    counts = server.get("/v1/status")
    equal((counts["pending"], counts["running"]), (1, 3), "of all teams")


def test_a_dry_run_says_what_would_be():
    def dry(*words):
        done = server.allot("submit", "--dry-run", *words, "--", "true", check=False)
        return done.returncode, done.stdout + done.stderr

    def known():
        return [w["id"] for w in server.allot_json("ps", "--all")["workloads"]]

    before = known()
    code, text = dry("--team", "vision", "--gpu", "0.5")
    equal((code, text), (0, "workload of team vision: would start now (dry run)\n"))
    code, text = dry("--team", "vision", "--class", "production", "--gpu", "1")
    expect(code == 0 and "would wait" in text and "guarantee" in text, text)
    code, text = dry("--team", "vision", "--gpus", "9")
    expect(code == 1 and "9 GPUs" in text, text)
    code, text = dry("--team", "vision", "--gpus", "1", "--gpu-type", "A100")
    expect(code == 1 and "H100" in text, text)
    done = server.allot("apply", "--dry-run", "-f", "-", stdin="""
{"apiVersion": "allot/v1", "kind": "Team", "metadata": {"name": "new"},
 "spec": {"guarantee": {"gpu": 9}}}
---
{"apiVersion": "allot/v1", "kind": "Workload", "metadata": {"name": "w"},
 "spec": {"team": "new", "gpus": 1, "command": ["true"]}}
""")
    equal(done.stdout, "team new created (dry run)\nworkload w created (dry run)\n")
    expect("before team 'new' is there" in done.stderr and "add up to" in done.stderr, done.stderr)
    equal(known(), before, "nothing was submitted")


def test_it_is_so_after_a_restart():
    server.kill()
    server.start()
    server.team("hr2", parent="hr")
    answer = production("vision", gpus=3)
    expect(answer.status >= 400 and "vision" in answer.json["detail"], f"{answer.body}")
    equal(server.stop(), 0, "exit status")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
