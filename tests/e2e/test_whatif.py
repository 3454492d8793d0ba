#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=120
"""A server's own past: exported while it runs, replayed otherwise, and turned into guarantees."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import Server, equal, expect, wait_for  # noqa: E402

server = Server(simulate="4xH100")
COUNT = 8


def whatif(*options):
    done = server.allot("sim", "whatif", "--data", server.data, "-o", "json", *options)
    return json.loads(done.stdout)


def group(outcome, name):
    return next(g for g in outcome["groups"] if g["name"] == name)


def test_start():
    server.start()
    server.team("red", gpu=2)
    server.team("blue", gpu=2)
    idents = [server.submit(team=("red", "blue")[i % 2], gpus=2, name=f"r{i}",
                            command=["sleep", "0.3"])["id"] for i in range(COUNT)]
    for ident in idents:
        server.wait_state(ident, "succeeded")
    running = server.submit(team="red", gpus=1, name="goes-on", command=["sleep", "600"])["id"]
    wait_for("its task", lambda: server.workload(running)["started_at"])


def test_the_history_is_exported_while_the_server_runs():
    text = server.allot("export", "history", "--data", server.data).stdout
    lines = [json.loads(line) for line in text.splitlines()]
    equal(lines[0]["history"], 1, "version")
    equal(sum("workload" in line for line in lines), COUNT + 1, "workloads")
    runs = [line["run"] for line in lines if "run" in line]
    expect(len(runs) >= COUNT + 1, f"runs: {runs}")
    equal([run[5] for run in runs if run[5] == 0], [0], "runs that go on")
    for word in (server.token, "sleep", "admin"):
        expect(word not in text, f"{word!r} is in the history")


def test_it_is_replayed_as_it_was():
    report = whatif()
    expect("whatif" not in report, "nothing was asked")
    equal(group(report["recorded"], "all")["jobs"], COUNT + 1, "jobs")
    equal(group(report["baseline"], "all")["waiting"], 0, "jobs that do not start")
    equal(report["recorded"]["capacity_milli_gpu"], 4000, "capacity")
    equal(report["model_error"]["jobs"], COUNT + 1, "jobs compared")
    equal(report["jobs_still_running"], 1, "jobs that go on")
    expect(report["recorded"]["allocated_milli_gpu_ms"] > 0, "nothing was allocated")


def test_more_nodes_take_the_waits_away():
    report = whatif("--nodes", "8x4xH100", "--price", "2000000")
    for name in ("all", "red", "blue", "2-4 GPUs"):
        equal(group(report["whatif"], name)["wait_p99_ms"], 0, f"waits of {name}")
    equal(report["whatif"]["restarts"], 0, "restarts")
    expect(report["whatif"]["cost_uusd"] > 0, "it costs nothing")
    expect(report["whatif"]["allocated_permille"] < report["recorded"]["allocated_permille"],
           "more GPUs are not used less")


def test_quotas_are_changed():
    path = os.path.join(server.folder, "teams.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("apiVersion: allot/v1\nkind: Team\nmetadata:\n  name: red\n"
                "spec:\n  guarantee:\n    gpu: 1\n  limit:\n    gpu: 1\n")
    report = whatif("--teams", path)
    equal(group(report["whatif"], "red")["refused"], COUNT // 2, "jobs above the limit")
    report = whatif("--team", "red.limit.gpu=2", "--team", "blue.limit.gpu=2")
    equal(group(report["whatif"], "all")["refused"], 0, "refused")
    equal(report["whatif"]["restarts"], 0, "restarts within limits")
    text = server.allot("sim", "whatif", "--hard-quota", "--data", server.data).stdout
    expect("what if" in text and "replayed as it was" in text, text)


def test_guarantees_are_proposed():
    report = json.loads(server.allot("quota", "suggest", "--data", server.data, "-o",
                                     "json").stdout)
    expect(report["proposed_gpus"] <= 4, f"proposed {report['proposed_gpus']} of 4")
    equal([t["team"] for t in report["teams"]], ["blue", "red"], "teams")
    text = server.allot("quota", "suggest", "--data", server.data).stdout
    expect("PROPOSED" in text and "red" in text, text)
    expect("GUARANTEE" in server.allot("quota").stdout, "the table of quotas has gone")


def test_a_team_below_a_younger_one_is_read():
    server.team("older")
    server.team("younger")
    answer = server.call("PUT", "/v1/teams/older", {"parent": "younger"})
    expect(answer.status in (200, 201), f"{answer.status} {answer.body!r}")
    text = server.allot("export", "history", "--data", server.data).stdout
    expect(text.index('"younger"') < text.index('"older"'), "the parent is not first")
    server.allot("quota", "suggest", "--data", server.data)


def test_bad_words_are_refused():
    for words in (("--team", "nobody.weight=1"), ("--nodes", "many"), ("--class", "x")):
        done = server.allot("sim", "whatif", "--data", server.data, *words, check=False)
        equal(done.returncode, 2, f"exit code of {words}")
        expect("allot: " in done.stderr and "hint: " in done.stderr, done.stderr)
    for command in (("export", "history"), ("quota", "suggest"), ("sim", "whatif")):
        done = server.allot(*command, "--data", server.folder, check=False)
        expect(done.returncode != 0 and "there is no store" in done.stderr, done.stderr)


def test_the_history_outlives_the_server():
    before = server.allot("export", "history", "--data", server.data).stdout
    server.kill()
    after = server.allot("export", "history", "--data", server.data).stdout
    expect(len(after.splitlines()) >= len(before.splitlines()), "lines are missing")
    server.start()
    equal(server.stop(), 0, "exit status")
    equal(len(server.allot("export", "history", "--data", server.data).stdout.splitlines()),
          len(after.splitlines()), "lines after a clean stop")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
