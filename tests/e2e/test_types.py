#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=120
"""Quotas of one GPU type: what they bound, what they give back, and what is said of them."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import Server, equal, expect, wait_for  # noqa: E402

server = Server(simulate="4xH100")
owned = []


def work(team, **more):
    return server.submit(team=team, gpus=1, command=["sleep", "600"],
                         preemption={"grace": "1s"}, **more)["id"]


def why(ident):
    return server.allot("why", str(ident)).stdout


def one_line(text):
    return " ".join(text.split())


def test_a_limit_of_a_type_is_told_as_one():
    server.start()
    answer = server.call("PUT", "/v1/teams/vis", {"guarantee": {"gpu": 2},
                                                  "limit": {"gpu_types": {"H100": 1}}})
    equal(answer.status, 201, f"a team with a limit of one type: {answer.body}")
    first, second = work("vis"), work("vis")
    server.wait_state(first, "running")
    equal(server.state(second), "pending", "the one beyond the limit")
    explained = server.get(f"/v1/workloads/{second}/explain")
    equal(explained["reason"], "team_limit", "why it waits")
    quota = explained["quota"]
    equal([quota[k] for k in ("gpu_type", "used", "guarantee", "limit", "share")],
          ["H100", 1, None, 1, None], "numbers of the type, none of them of all types")
    expect("  team          vis uses 1 of type H100, limit 1\n" in why(second), why(second))
    for ident in (first, second):
        server.call("POST", f"/v1/workloads/{ident}/stop", {})
        server.wait_state(ident, "cancelled")


def test_who_is_within_its_guarantee_of_a_type_gets_it_back():
    server.team("lender", gpu=4)
    server.team("owner", guarantee={"gpu": 2, "gpu_types": {"H100": 2}})
    lent = [work("lender") for _ in range(4)]
    for ident in lent:
        server.wait_state(ident, "running")
    owned.append(server.submit(team="owner", gpus=2, gpu_type=["H100"],
                               command=["sleep", "600"])["id"])
    server.wait_state(owned[0], "running")
    back = [i for i in lent if server.state(i) == "pending"]
    equal(back, lent[2:], "who gave way: the youngest, and no more than needed")
    message = server.get(f"/v1/workloads/{back[0]}/explain")["last_eviction"]
    expect("takes back 2 GPUs of type H100 it is entitled to" in message, message)


def test_beyond_the_guarantee_of_the_type_it_waits():
    ident = work("owner", gpu_type=["H100"])
    text = wait_for("its explanation", lambda: why(ident), 10)
    expect("of type H100 team owner uses 2 GPUs of its guarantee of 2 GPUs" in one_line(text), text)
    expect("by type       owner uses 2 of type H100, guarantee 2\n" in text, text)
    types = server.get(f"/v1/workloads/{ident}/explain")["quota_types"]
    equal(types, [{"team": "owner", "gpu_type": "H100", "used": 2, "guarantee": 2, "limit": None}],
          "what is stated of its type")


def test_nobody_takes_it_back():
    quota = server.allot("quota", "owner").stdout
    row = next(line.split() for line in quota.splitlines() if "[H100]" in line)
    equal(row.count("2"), 2, f"used and guarantee of the type in 'allot quota':\n{quota}")
    equal(server.state(owned[0]), "running", "what it was given back")
    equal(server.stop(), 0, "exit status")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
