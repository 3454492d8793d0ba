#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=120
"""GET /metrics: what a scraper gets, read as strictly as the format says."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.driver import CONTEXT, DRIVER  # noqa: E402
from e2e.harness import Server, equal, expect, wait_for  # noqa: E402

server = Server(simulate="4xH100")
MIB = 1 << 20
DEVICE_LABELS = ["Hostname", "UUID", "device", "gpu", "modelName", "pci_bus_id"]
TASK_LABELS = ["container", "namespace", "pod"]

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?\d+(?:\.\d+)?)")
UNESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def read_sample(line):
    match = SAMPLE.fullmatch(line)
    expect(match, f"not a sample: {line!r}")
    pairs = [(k, re.sub(r"\\.", lambda m: UNESCAPED[m[0]], v))
             for k, v in re.findall(LABEL, match[2] or "")]
    equal(len(pairs), len(dict(pairs)), f"a label comes twice: {line}")
    return match[1], dict(pairs), float(match[match.lastindex])


def parse(text):
    """{family: [(labels, value)]}; Failure where a reader might stumble."""
    families, types, series, current = {}, {}, set(), None
    expect(text.endswith("\n"), "the last line has no end")
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name = re.fullmatch(rf"# HELP ({NAME}) (.+)", line)[1]
            expect(name not in families, f"{name} comes twice")
            families[name], current = [], name
        elif line.startswith("# TYPE "):
            name, kind = re.fullmatch(rf"# TYPE ({NAME}) (gauge|counter)", line).groups()
            expect(name == current and name not in types, f"a type out of place: {line}")
            types[name] = kind
        else:
            name, labels, value = read_sample(line)
            expect(name == current and name in types, f"a sample out of place: {line}")
            key = (name, tuple(sorted(labels.items())))
            expect(key not in series, f"a series comes twice: {line}")
            series.add(key)
            families[name].append((labels, value))
    expect(all(families.values()), "a family without samples")
    for name in types:
        expect(types[name] != "counter" or name.endswith("_total") or name.startswith("DCGM_"),
               f"the counter {name} is not called so")
    return families


def scrape(token=""):
    answer = server.call("GET", "/metrics", token=token)
    equal(answer.status, 200, f"{answer.body}")
    equal(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
    return parse(answer.body.decode())


def value(families, name, **labels):
    """Of the only series that has LABELS; None where there is none."""
    found = [v for have, v in families.get(name, []) if labels.items() <= have.items()]
    expect(len(found) <= 1, f"{name} {labels}: {len(found)} series")
    return found[0] if found else None


def member(name, team):
    equal(server.call("PUT", f"/v1/users/{name}", {"teams": [team]}).status, 200)
    answer = server.call("POST", "/v1/tokens", {"user": name})
    equal(answer.status, 201, f"{answer.body}")
    return answer.json["token"]


def start(team, name, program, **request):
    answer = server.call("POST", "/v1/workloads",
                         {"team": team, "name": name, **request,
                          "command": ["python3", "-uc",
                                      DRIVER + program + "\ntime.sleep(600)"]})
    equal(answer.status, 201, f"{answer.body}")
    server.wait_state(answer.json["id"], "running")
    return answer.json["id"]


def used_by(name):
    return lambda: value(scrape(), "DCGM_FI_DEV_FB_USED", pod=name)


def test_every_device_has_its_figures():
    server.start()
    server.team("red", gpu=1)
    server.team("blue", gpu=1, limit=2)
    families = wait_for("readings", lambda: (f := scrape()).get("DCGM_FI_DEV_FB_FREE") and f)
    for name in ("SM_CLOCK", "MEM_CLOCK", "GPU_TEMP", "POWER_USAGE", "TOTAL_ENERGY_CONSUMPTION",
                 "GPU_UTIL", "MEM_COPY_UTIL", "FB_FREE", "FB_USED", "FB_RESERVED"):
        rows = families["DCGM_FI_DEV_" + name]
        equal([labels["gpu"] for labels, _ in rows], ["0", "1", "2", "3"], name)
        for labels, _ in rows:
            equal(sorted(labels), DEVICE_LABELS, name)
            expect(re.fullmatch(r"GPU-[0-9a-f-]{36}", labels["UUID"]), labels["UUID"])
            equal(labels["Hostname"], server.get("/v1/nodes")["nodes"][0]["name"])
        equal(len({labels["UUID"] for labels, _ in rows}), 4, "each has a number of its own")
    # What the driver's counters tell of the last second, as soon as there was one.
    families = wait_for("counters", lambda: (f := scrape()).get("DCGM_FI_PROF_SM_ACTIVE") and f)
    for name in ("GR_ENGINE_ACTIVE", "SM_ACTIVE", "PIPE_TENSOR_ACTIVE", "DRAM_ACTIVE"):
        equal(len(families["DCGM_FI_PROF_" + name]), 4, name)
    for gpu in "0123":
        equal(sum(value(families, "DCGM_FI_DEV_FB_" + kind, gpu=gpu)
                  for kind in ("FREE", "USED", "RESERVED")), 80 * 1024, "all of its memory")


def test_memory_of_a_task_shows_under_its_name():
    start("red", "trainer", "context(); print(take(3 << 30))", gpus=1)
    wanted = 3 * 1024 + CONTEXT // MIB
    wait_for("its memory", lambda: used_by("trainer")() == wanted)
    families = scrape()
    rows = [labels for labels, _ in families["DCGM_FI_DEV_FB_USED"] if "pod" in labels]
    equal(len(rows), 1)
    equal(sorted(rows[0]), sorted(DEVICE_LABELS + TASK_LABELS))
    equal([rows[0][k] for k in TASK_LABELS], ["0", "red", "trainer"])
    equal(value(families, "allot_task_gpus", pod="trainer", gpu=rows[0]["gpu"]), 1)


def test_a_shared_device_is_one_series():
    for name in ("half", "quarter"):
        start("blue", name, "context(); print(take(1 << 30))",
              gpu=0.5 if name == "half" else 0.25)
    families = scrape()
    parts = {labels["pod"]: (labels["gpu"], v) for labels, v in families["allot_task_gpus"]}
    gpu = parts["half"][0]
    equal(parts["quarter"][0], gpu, "they share a device")
    equal((parts["half"][1], parts["quarter"][1]), (0.5, 0.25))
    wanted = 2 * (1024 + CONTEXT // MIB)
    wait_for("what both have",
             lambda: value(scrape(), "DCGM_FI_DEV_FB_USED", gpu=gpu) == wanted)
    expect(not [labels for labels, _ in scrape()["DCGM_FI_DEV_FB_USED"]
                if labels["gpu"] == gpu and "pod" in labels], "it is nobody's alone")


def test_teams_workloads_and_nodes():
    families = scrape()
    gpus = {(labels["team"], labels["kind"]): v for labels, v in families["allot_team_gpus"]}
    equal((gpus["red", "guarantee"], gpus["red", "used"]), (1, 1))
    expect(("red", "limit") not in gpus, "no limit is no number")
    equal((gpus["blue", "limit"], gpus["blue", "used"], gpus["blue", "pending"]), (2, 0.75, 0))
    equal(value(families, "allot_workloads", state="running", **{"class": "training"}), 3)
    equal(len(families["allot_workloads"]), 16)
    server.submit(team="red", gpus=4, command=["true"], name="waits")
    families = scrape()
    equal(value(families, "allot_team_gpus", team="red", kind="pending"), 4)
    equal(value(families, "allot_workloads", state="pending", **{"class": "training"}), 1)
    equal({labels["state"]: v for labels, v in families["allot_nodes"]},
          {"up": 1, "down": 0, "unknown": 0, "drained": 0})
    equal(value(families, "allot_build_info"), 1)
    expect(value(families, "process_resident_memory_bytes") > MIB, "memory")
    expect(value(families, "process_open_fds") > 3, "files")
    equal(value(scrape(), "process_start_time_seconds"),
          value(families, "process_start_time_seconds"), "the start does not move")


def test_nobody_without_a_token():
    for method, token, status in (("GET", None, 401), ("GET", "nonsense", 401),
                                  ("POST", "", 405), ("HEAD", "", 200)):
        equal(server.call(method, "/metrics", token=token).status, status, f"{method} {token}")
    equal(server.call("GET", "/metrics?x=1").status, 400)


def test_a_member_sees_its_own():
    families = scrape(member("rita", "red"))
    rows = families["DCGM_FI_DEV_FB_USED"]
    equal([labels["pod"] for labels, _ in rows], ["trainer"], "one device")
    equal({labels["team"] for labels, _ in families["allot_team_gpus"]}, {"red"})
    equal({labels["namespace"] for labels, _ in families["allot_task_gpus"]}, {"red"})
    equal(value(families, "allot_workloads", state="running", **{"class": "training"}), 1)
    # Of a device that it shares it sees all figures, and of who holds it itself.
    families = scrape(member("bert", "blue"))
    equal(len(families["DCGM_FI_DEV_FB_USED"]), 1)
    equal({labels["pod"] for labels, _ in families["allot_task_gpus"]}, {"half", "quarter"})
    equal(server.call("PUT", "/v1/users/rita",
                      {"teams": [t["name"] for t in server.get("/v1/teams")["teams"]]}).status,
          200)
    answer = server.call("POST", "/v1/tokens", {"user": "rita"})
    equal(len(scrape(answer.json["token"])["DCGM_FI_DEV_FB_USED"]), 4,
          "who sees all teams sees all devices")


def test_names_are_escaped():
    name = 'a"b\\n{x="1"} 2'
    start("blue", name, "context()", gpus=1)
    equal(value(scrape(), "allot_task_gpus", pod=name), 1)


def test_what_a_restart_forgets_comes_back():
    server.kill()
    server.start()
    wait_for("readings", lambda: used_by("trainer")() == 3 * 1024 + CONTEXT // MIB)


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
