#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=240
"""A server's own past: fetched while it runs, replayed otherwise, and turned into guarantees."""
import json
import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import ALLOT, SANITIZED, Failure, Server, equal, expect, wait_for  # noqa: E402

server = Server(simulate="4xH100")
COUNT = 8


def whatif(*options):
    """By way of the server, as a person far away does it."""
    return server.allot_json("sim", "whatif", *options)


def history(*options):
    text = server.allot("export", "history", *options).stdout
    return [json.loads(line) for line in text.splitlines()]


def group(outcome, name):
    return next(g for g in outcome["groups"] if g["name"] == name)


def save(name, text):
    path = os.path.join(server.folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


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
    lines = history()
    equal(lines[0]["history"], 2, "version")
    equal(sum("workload" in line for line in lines), COUNT + 1, "workloads")
    runs = [line for line in lines if "run" in line]
    expect(len(runs) >= COUNT + 1, f"runs: {runs}")
    equal([r["how"] for r in runs if r["run"][5] == 0], [""], "runs that go on")
    expect(all(r["how"] in ("ended", "gave_way") for r in runs if r["run"][5] != 0), f"{runs}")
    equal(lines[-1]["end"], {"workloads": COUNT + 1, "runs": len(runs)}, "the last line")
    changes = [line for line in lines if "change" in line]
    expect({"team", "node", "server"} <= {c["change"] for c in changes}, f"{changes}")
    text = json.dumps(lines)
    for word in (server.token, "sleep", "admin"):
        expect(word not in text, f"{word!r} is in the history")


def test_server_and_folder_tell_the_same():
    far, near = history(), history("--data", server.data)
    equal([x for x in far if "run" not in x and "history" not in x][:-1],
          [x for x in near if "run" not in x and "history" not in x][:-1], "history")


def test_who_does_not_see_all_teams_is_denied():
    equal(server.call("GET", "/v1/history", token=None).status, 401, "without a token")
    equal(server.call("GET", "/v1/history", token="alt_wrong").status, 401, "a wrong token")
    server.allot("user", "set", "ann", "--team", "red")
    token = server.call("POST", "/v1/tokens", {"user": "ann"}).json["token"]
    answer = server.call("GET", "/v1/history", token=token)
    equal(answer.status, 403, "a member of one team")
    expect("does not see them all" in answer.json["detail"], answer.json)
    for command in (("sim", "whatif"), ("sim", "suggest"), ("export", "history")):
        done = server.allot(*command, "--token", token, check=False)
        expect(done.returncode != 0 and "does not see them all" in done.stderr, done.stderr)
        equal(done.stdout, "", "output")
    server.allot("user", "set", "ann", "--team", "red", "--team", "blue", "--team", "default")
    equal(server.call("GET", "/v1/history", token=token).status, 200, "a member of all teams")


def test_it_is_replayed_as_it_was():
    report = whatif()
    expect("whatif" not in report, "nothing was asked")
    equal(group(report["recorded"], "all")["jobs"], COUNT + 1, "jobs")
    equal(group(report["baseline"], "all")["waiting"], 0, "jobs that do not start")
    equal(report["recorded"]["capacity_milli_gpu"], 4000, "capacity")
    fit = report["model_error"]
    equal(fit["jobs"], COUNT + 1, "jobs compared")
    if not SANITIZED:
        expect(fit["start_p50_ms"] < 1000 and fit["mean_wait_ms"] < 1000, f"{fit}")
        expect(fit["allocated_permille"] < 150, f"{fit}")
    equal(report["jobs_still_running"], 1, "jobs that go on")
    expect(report["recorded"]["allocated_milli_gpu_ms"] > 0, "nothing was allocated")


def test_more_nodes_take_the_waits_away():
    for nodes in ("8x4xH100", "+7x4xH100"):
        report = whatif("--nodes", nodes, "--price", "2.50")
        equal(report["whatif"]["capacity_milli_gpu"], 32000, "capacity")
        for name in ("all", "red", "blue", "2-4 GPUs"):
            equal(group(report["whatif"], name)["wait_p99_ms"], 0, f"waits of {name}")
        equal(report["whatif"]["evictions"], 0, "evictions")
        expect(report["whatif"]["cost_uusd"] > 0, "it costs nothing")
        expect(report["whatif"]["allocated_permille"] < report["recorded"]["allocated_permille"],
               "more GPUs are not used less")


def test_less_for_one_team_makes_it_wait():
    report = whatif("--team", "red.guarantee.gpu=0", "--team", "red.weight=0")
    was, is_ = (group(report[key], "red")["wait_mean_ms"] for key in ("baseline", "whatif"))
    expect(is_ > was, f"red waits {is_} ms instead of {was}")
    was, is_ = (group(report[key], "blue")["wait_mean_ms"] for key in ("baseline", "whatif"))
    expect(is_ <= was, f"blue waits {is_} ms instead of {was}")


def test_quotas_are_changed():
    path = save("teams.yaml", "apiVersion: allot/v1\nkind: Team\nmetadata:\n  name: red\n"
                "spec:\n  guarantee:\n    gpu: 1\n  limit:\n    gpu: 1\n")
    report = whatif("--teams", path)
    equal(group(report["whatif"], "red")["refused"], COUNT // 2, "jobs above the limit")
    report = whatif("--team", "red.limit.gpu=2", "--team", "blue.limit.gpu=2")
    equal(group(report["whatif"], "all")["refused"], 0, "refused")
    equal(report["whatif"]["evictions"], 0, "evictions within limits")
    # a hard quota: the limit goes with the guarantee
    report = whatif("--team", "red.quota=hard", "--team", "red.guarantee.gpu=1")
    equal(group(report["whatif"], "red")["refused"], COUNT // 2, "jobs above the hard quota")


def test_tables_fit_a_terminal():
    for options in ((), ("--hard-quota", "--price", "2.50"), ("--nodes", "+1x4xH100")):
        text = server.allot("sim", "whatif", *options).stdout
        expect("recorded" in text and "Fit:" in text and "points apart" in text, text)
        expect(max(map(len, text.splitlines())) <= 80, text)
    text = server.allot("quota", "suggest").stdout
    expect(max(map(len, text.splitlines())) <= 80, text)
    for command in ("scenarios", "random", "pack", "replay", "scale", "whatif", "suggest"):
        text = server.allot("sim", command, "--help").stdout
        expect(max(map(len, text.splitlines())) <= 80, f"help of {command}")


def test_guarantees_are_proposed():
    for options in ((), ("--data", server.data)):
        report = server.allot_json("quota", "suggest", *options)
        expect(report["proposed_gpus"] <= 4, f"proposed {report['proposed_gpus']} of 4")
        equal([t["team"] for t in report["teams"]], ["blue", "red"], "teams")
    text = server.allot("quota", "suggest").stdout
    expect("Proposed" in text and "red" in text, text)
    expect("GUARANTEE" in server.allot("quota").stdout, "the table of quotas has gone")


def test_standard_input_and_pipes_are_read():
    text = server.allot("export", "history").stdout
    report = json.loads(server.allot("sim", "whatif", "-o", "json", "-", stdin=text).stdout)
    equal(group(report["recorded"], "all")["jobs"], COUNT + 1, "jobs")
    done = server.allot("sim", "whatif", "-", stdin=text[:len(text) // 2], check=False)
    expect(done.returncode == 2 and "allot: history 'standard input'" in done.stderr, done.stderr)
    save("history.jsonl", text)
    done = subprocess.run(
        ["bash", "-c", f"{ALLOT} sim suggest -o json <(cat {server.folder}/history.jsonl)"],
        env=server.environment(), capture_output=True, text=True, timeout=60, check=False)
    equal(done.returncode, 0, done.stderr)


def test_edits_are_replayed_at_their_time():
    server.team("green", limit=1)
    waits = [server.submit(team="green", gpus=1, command=["sleep", "0.2"])["id"] for _ in range(2)]
    for ident in waits:
        server.wait_state(ident, "succeeded")
    server.team("green", limit=4)
    server.call("POST", f"/v1/nodes/{server.get('/v1/nodes')['nodes'][0]['name']}/drain", {})
    server.call("POST", f"/v1/nodes/{server.get('/v1/nodes')['nodes'][0]['name']}/undrain", {})
    server.submit(team="green", gpus=1, command=["true"])
    report = whatif()
    expect(report["changes"] >= 4, f"{report['changes']} changes")
    equal(report["baseline"]["changes_left_out"], 0, "changes that cannot be made")


def test_a_busy_time_is_replayed_closely():
    """Evictions, failures that are tried again, edits and a drain, all at their times."""
    busy = Server(simulate="4xH100")
    draw = random.Random(3)
    try:
        busy.start()
        for team in ("red", "blue"):
            busy.team(team, gpu=2)
        node = busy.get("/v1/nodes")["nodes"][0]["name"]
        fails = ["sh", "-c", "sleep 0.3; [ $ALLOT_RESTART_COUNT -ge 1 ]"]
        idents = []
        for i in range(36):
            more = {"command": ["sleep", f"{draw.uniform(0.3, 2):.1f}"]}
            if i % 6 == 5:
                more = {"command": fails, "max_retries": 2}
            idents.append(busy.submit(team=draw.choice(("red", "blue")), gpus=draw.choice((1, 2)),
                                      preemption={"grace": "1s"},
                                      **{"class": draw.choice(("training", "batch"))},
                                      **more)["id"])
            time.sleep(draw.uniform(0, 0.3))
            if i == 12:
                busy.team("red", gpu=1, limit=2)
            if i == 20:
                busy.call("POST", f"/v1/nodes/{node}/drain", {})
            if i == 24:
                busy.call("POST", f"/v1/nodes/{node}/undrain", {})
        for ident in idents:
            busy.wait_state(ident, "succeeded")
        report = busy.allot_json("sim", "whatif")
    finally:
        busy.close()
    recorded, baseline, fit = report["recorded"], report["baseline"], report["model_error"]
    expect(recorded["retries"] >= 2 and baseline["retries"] == recorded["retries"],
           f"retries {recorded['retries']} and {baseline['retries']}")
    expect(report["changes"] >= 3 and baseline["changes_left_out"] == 0, f"{report['changes']}")
    if not SANITIZED:
        mean = group(recorded, "all")["wait_mean_ms"]
        expect(fit["mean_wait_ms"] < 500 + mean // 5, f"mean wait {mean}: {fit}")
        expect(fit["allocated_permille"] < 50, f"{fit}")


def test_a_team_below_a_younger_one_is_read():
    server.team("older")
    server.team("younger")
    answer = server.call("PUT", "/v1/teams/older", {"parent": "younger"})
    expect(answer.status in (200, 201), f"{answer.status} {answer.body!r}")
    text = server.allot("export", "history", "--data", server.data).stdout
    expect(text.index('"younger"') < text.index('"older"'), "the parent is not first")
    server.allot("quota", "suggest", "--data", server.data)


def complains(done, *words):
    expect(done.returncode not in (0, 139, 134), f"exit {done.returncode}: {done.stderr}")
    expect(done.stderr.startswith("allot: ") and "hint: " in done.stderr, done.stderr)
    for word in words:
        expect(word in done.stderr, f"{word!r} is not in {done.stderr}")


def test_bad_words_are_refused():
    for words, says in ((("--team", "nobody.weight=1"), "no team 'nobody'"),
                        (("--team", "red.guarantee=3"), "red.guarantee.gpu=3"),
                        (("--team", "red.name=blue"), "another name"),
                        (("--team", "red.parent=nobody"), "nobody"),
                        (("--team", "red.parent=blue"), "work of its own"),
                        (("--team", "younger.parent=older"), "below itself"),
                        (("--team", "red.colour=1"), "colour"),
                        (("--nodes", "many"), "4x8xH100"),
                        (("--nodes", "4xH100"), "how many GPUs"),
                        (("--price", "0"), "--price 2.50"),
                        (("--price", "2000000"), "--price 2.50"),
                        (("--price", "2,50"), "--price 2.50"),
                        (("--checkpoint", "0s"), "never"),
                        (("--checkpoint", "x"), "--checkpoint 10m"),
                        (("--stop", "-1s"), "--stop 5s"),
                        (("--min-run", "soon"), "--min-run 5m"),
                        (("--class", "x"), "development.may_reclaim=no"),
                        (("--teams", "/no/such/file"), "/no/such/file"),
                        (("-o", "xml"), "-o json"),
                        (("--frob",), "no option '--frob'"),
                        (("--team",), "'--team' needs a value"),
                        (("--data", server.data, "x"), "more than one"),
                        (("a", "b"), "one word too many")):
        try:
            complains(server.allot("sim", "whatif", *words, check=False), says)
        except Exception as e:
            raise Failure(f"{words}: {e}") from None
    complains(server.allot("sim", "suggest", "--frob", check=False), "no option '--frob'")
    complains(server.allot("quota", "--data", server.data, check=False), "suggestions only")
    whatif("--checkpoint", "never", "--stop", "0s")


def test_bad_places_are_refused():
    fifo = os.path.join(server.folder, "fifo")
    os.mkfifo(fifo)
    large = save("large", '{"history":2,"now_ms":99999999999999999999,"events_from_ms":0}\n')
    closed = os.path.join(server.folder, "closed")
    os.mkdir(closed, 0o000)
    for words, says in (((server.folder,), "is a folder"), ((fifo,), "is empty"),
                        (("/dev/zero",), "neither a file nor a pipe"),
                        (("/no/such/file",), "cannot be read"), ((large,), "now_ms"),
                        ((ALLOT,), "line 1")):
        complains(server.allot("sim", "whatif", *words, check=False, timeout=60), says)
        complains(server.allot("sim", "suggest", *words, check=False, timeout=60), says)
    for command in (("export", "history"), ("quota", "suggest"), ("sim", "whatif")):
        for folder in (server.folder, "/no/such/folder", closed, fifo):
            done = server.allot(*command, "--data", folder, check=False)
            complains(done, "there is no store")
        complains(server.allot(*command, "--server", "http://127.0.0.1:1", check=False),
                  "127.0.0.1:1")


def test_the_history_outlives_the_server():
    before = server.allot("export", "history", "--data", server.data).stdout
    server.kill()
    after = server.allot("export", "history", "--data", server.data).stdout
    expect(len(after.splitlines()) >= len(before.splitlines()), "lines are missing")
    server.start()
    equal(server.stop(), 0, "exit status")
    expect(len(server.allot("export", "history", "--data", server.data).stdout.splitlines()) >=
           len(after.splitlines()), "lines after a clean stop")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
