#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=120
"""A data folder of the first release: the server starts on it, and everything is there.

The schema and the rows are written out here as that release wrote them, rather than made by steps
of the present one: whoever changes a step of the past is found out.
"""
import hashlib
import os
import socket
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import Server, equal, expect, ms, wait_for  # noqa: E402

SCHEMA = """
CREATE TABLE teams(id INTEGER PRIMARY KEY, parent_id INTEGER REFERENCES teams(id), version
    INTEGER NOT NULL, name TEXT NOT NULL, deleted INTEGER NOT NULL DEFAULT 0,
    guarantee_gpu_milli INTEGER NOT NULL, guarantee_cpu_milli INTEGER NOT NULL,
    guarantee_memory_bytes INTEGER NOT NULL, limit_gpu_milli INTEGER NOT NULL, limit_cpu_milli
    INTEGER NOT NULL, limit_memory_bytes INTEGER NOT NULL, weight INTEGER NOT NULL, priority
    INTEGER NOT NULL, volume_limit INTEGER NOT NULL) STRICT;
CREATE UNIQUE INDEX teams_name ON teams(name) WHERE deleted = 0;
CREATE TABLE shapes(id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE workloads(id INTEGER PRIMARY KEY, name TEXT NOT NULL, team TEXT NOT NULL, team_id
    INTEGER NOT NULL REFERENCES teams(id), owner TEXT NOT NULL, kind TEXT NOT NULL, class TEXT
    NOT NULL, state TEXT NOT NULL, submitted_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL, evicted_ms INTEGER NOT NULL, restarts INTEGER NOT NULL, failures
    INTEGER NOT NULL, running_tasks INTEGER NOT NULL, ended_tasks INTEGER NOT NULL, exit_code
    INTEGER NOT NULL, message TEXT, gpu_milli INTEGER NOT NULL, shape_id INTEGER NOT NULL
    REFERENCES shapes(id)) STRICT;
CREATE INDEX workloads_live ON workloads(id) WHERE state IN ('pending', 'running', 'stopping');
CREATE INDEX workloads_team ON workloads(team);
CREATE TABLE launches(workload INTEGER PRIMARY KEY REFERENCES workloads(id), json TEXT NOT NULL)
    STRICT;
CREATE TABLE tasks(workload INTEGER NOT NULL REFERENCES workloads(id), idx INTEGER NOT NULL,
    attempt INTEGER NOT NULL, state TEXT NOT NULL, node INTEGER NOT NULL, devices TEXT NOT NULL,
    gpu_milli INTEGER NOT NULL, held_until_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL, exit_code INTEGER NOT NULL, exit_signal INTEGER NOT NULL, message
    TEXT, PRIMARY KEY(workload, idx)) STRICT, WITHOUT ROWID;
CREATE TABLE nodes(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, json TEXT NOT NULL)
    STRICT;
CREATE TABLE allocations(id INTEGER PRIMARY KEY, workload INTEGER NOT NULL REFERENCES
    workloads(id), task INTEGER NOT NULL, attempt INTEGER NOT NULL, team INTEGER NOT NULL
    REFERENCES teams(id), node INTEGER NOT NULL, devices TEXT NOT NULL, gpu_milli INTEGER NOT
    NULL, cpu_milli INTEGER NOT NULL, memory_bytes INTEGER NOT NULL, start_ms INTEGER NOT NULL,
    end_ms INTEGER NOT NULL, busy_ns INTEGER NOT NULL, seen_ms INTEGER NOT NULL) STRICT;
CREATE INDEX allocations_end ON allocations(end_ms);
CREATE INDEX allocations_workload ON allocations(workload);
CREATE TABLE users(name TEXT NOT NULL PRIMARY KEY, admin INTEGER NOT NULL, teams TEXT NOT NULL)
    STRICT, WITHOUT ROWID;
CREATE TABLE tokens(id INTEGER PRIMARY KEY AUTOINCREMENT, user TEXT NOT NULL REFERENCES
    users(name) ON DELETE CASCADE, label TEXT, hash BLOB NOT NULL UNIQUE CHECK(length(hash) =
    32), created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL) STRICT;
CREATE INDEX tokens_user ON tokens(user);
CREATE TABLE events(seq INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, type TEXT NOT NULL,
    workload INTEGER, task INTEGER NOT NULL, workload_name TEXT, team TEXT, node TEXT, actor
    TEXT, message TEXT, data TEXT) STRICT;
CREATE INDEX events_workload ON events(workload) WHERE workload IS NOT NULL;
CREATE TABLE replies(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, digest TEXT NOT NULL,
    status INTEGER NOT NULL, body TEXT NOT NULL, expires_ms INTEGER NOT NULL) STRICT;
CREATE INDEX replies_expires ON replies(expires_ms);
CREATE TABLE meta(key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
PRAGMA user_version = 1;
"""

NONE = (1 << 63) - 1  # "no limit"
T = 1_790_000_000_000  # when it happened
NODE = socket.gethostname()
TOKENS = {"admin": "allot_" + "a" * 43, "ada": "allot_" + "b" * 43}

SHAPE = ('{"kind":"job","class":"training","priority":0,"preemptible":true,"burst":true,'
         '"handling":"checkpoint","max_retries":0,"min_tasks":1,"grace_ms":30000,"limit_ms":0,'
         '"expected_ms":0,"min_run_ms":0,"topology_required":null,"topology_preferred":null,'
         '"groups":[{"name":"main","tasks":1,"min_tasks":1,"topology_required":null,'
         '"device_count":%d,"device_milli":1000,"device_memory_bytes":0,"cpu_milli":0,'
         '"memory_bytes":0,"gpu_types":[],"labels":{}}]}')
LAUNCH = '{"groups":[{"command":["sh","-c","exit %d"]}]}'
MACHINE = ('{"id":7,"name":"%s","cluster":"local","state":"up","drained":true,"gpu_type":"H100",'
           '"sharing":"none","limits":"none","isolation":"none","cpu":2,"memory":"8GiB",'
           '"devices":[{"uuid":"SIM-H100-0","type":"H100","memory":"80GiB","simulated":true},'
           '{"uuid":"SIM-H100-1","type":"H100","memory":"80GiB","simulated":true}],"labels":{}}'
           % NODE)
TOLD = "reclaimed: team vision takes back 1 GPU it is entitled to, for 'secret' (9)"

# id, parent, version, name, deleted, guarantee x 3, limit x 3, weight, priority, volumes
TEAMS = [
    (2, None, 3, "lab", 0, 2000, 0, 0, NONE, NONE, NONE, 1, 100, NONE),
    (3, 2, 1, "nlp", 0, 1000, 4000, 1 << 30, 2000, NONE, NONE, 2, 50, 5),
    (4, None, 1, "gone", 1, 0, 0, 0, NONE, NONE, NONE, 1, 100, NONE),
]
# id, name, team, team id, owner, state, started, ended, exit code, message, milli-GPU, shape
WORKLOADS = [
    (10, "done", "nlp", 3, "ada", "succeeded", T + 1000, T + 61_000, 0, None, 1000, 1),
    (11, "broken", "gone", 4, "ada", "failed", T + 2000, T + 3000, 3, "exit code 3", 2000, 2),
    (12, "evicted", "nlp", 3, "ada", "pending", 0, 0, 0, TOLD, 1000, 1),
    (13, "waits", "nlp", 3, "ada", "pending", 0, 0, 0, None, 2000, 2),
    (14, "ran", "nlp", 3, "ada", "running", T + 5000, 0, 0, None, 1000, 1),
]
# id, workload, task, attempt, team, node, devices, milli-GPU, start, end, busy ns, seen
ALLOCATIONS = [
    (20, 10, 0, 0, 3, 7, "0", 1000, T + 1000, T + 61_000, 45_000_000_000, T + 61_000),
    (21, 11, 0, 0, 4, 7, "0,1", 2000, T + 2000, T + 3000, 0, T + 3000),
    (22, 14, 0, 0, 3, 7, "0", 1000, T + 5000, 0, 0, T + 9000),
]
# seq, time, type, workload, task, name, team, node, actor, message
EVENTS = [
    (1, T, "server.started", None, -1, None, None, None, "allot", "server started"),
    (2, T + 1, "workload.submitted", 10, -1, "done", "nlp", None, "ada", "submitted: job, 1 GPU"),
    (3, T + 2, "workload.evicted", 12, -1, "evicted", "nlp", None, "allot", TOLD),
    (4, T + 3, "workload.submitted", 13, -1, "waits", "nlp", None, "ada", "submitted: job, 2 GPUs"),
]


def rows_of(table, rows):
    marks = ",".join("?" * len(rows[0]))
    return [(f"INSERT INTO {table} VALUES({marks})", row) for row in rows]


def write_store(path):
    db = sqlite3.connect(path)
    db.executescript(SCHEMA)
    rows = rows_of("teams", TEAMS)
    rows += rows_of("shapes", [(1, SHAPE % 1), (2, SHAPE % 2)])
    for (ident, name, team, team_id, owner, state, started, ended, code, told, gpu,
         shape) in WORKLOADS:
        rows += rows_of("workloads", [(ident, name, team, team_id, owner, "job", "training", state,
                                       T, started, ended, T if told == TOLD else 0, 0, 0,
                                       int(state == "running"), int(ended > 0), code, told, gpu,
                                       shape)])
        rows += rows_of("launches", [(ident, LAUNCH % 0)])
    rows += rows_of("tasks", [
        (10, 0, 0, "succeeded", 0, "", 1000, 0, T + 1000, T + 61_000, 0, 0, None),
        (11, 0, 0, "failed", 0, "", 2000, 0, T + 2000, T + 3000, 3, 0, "exit code 3"),
        (12, 0, 1, "pending", 0, "", 1000, 0, 0, 0, 0, 0, TOLD),
        (14, 0, 0, "running", 7, "0", 1000, 0, T + 5000, 0, 0, 0, None)])
    rows += rows_of("nodes", [(7, NODE, MACHINE)])
    rows += rows_of("allocations", [(*a[:8], 500, 1 << 20, *a[8:]) for a in ALLOCATIONS])
    rows += rows_of("users", [("admin", 1, ""), ("ada", 0, "nlp\n")])
    rows += rows_of("tokens", [
        (30 + i, user, "laptop", hashlib.blake2b(secret.encode(), digest_size=32).digest(), T, 0)
        for i, (user, secret) in enumerate(TOKENS.items())])
    rows += rows_of("events", [(*e, None) for e in EVENTS])
    rows += rows_of("meta", [("boot_id", "a-boot-of-long-ago"), ("clock_offset_ms", str(T))])
    for sql, values in rows:
        db.execute(sql, values)
    db.commit()
    db.close()


server = Server(simulate="2xH100")


def start():
    os.makedirs(server.data, mode=0o700)
    write_store(os.path.join(server.data, "allot.db"))
    with open(os.path.join(server.data, "admin-token"), "w", encoding="ascii") as f:
        f.write(TOKENS["admin"] + "\n")
    server.start()


def test_it_starts():
    start()
    status = server.get("/v1/status")
    equal(status["store"]["ok"], True, f"{status}")
    wait_for("events behind the old ones",
             lambda: server.get("/v1/status")["last_event"] > len(EVENTS))


def test_teams_are_there():
    teams = {t["name"]: t for t in server.get("/v1/teams")["teams"]}
    equal(sorted(t for t in teams if t != "default"), ["lab", "nlp"], "teams")
    nlp = teams["nlp"]
    equal((nlp["id"], nlp["parent"], nlp["version"], nlp["weight"], nlp["priority"]),
          (3, "lab", 1, 2, 50), "nlp")
    equal(nlp["guarantee"], {"gpu": 1, "cpu": 4, "memory": "1GiB"}, "guarantee")
    equal(nlp["limit"], {"gpu": 2, "cpu": None, "memory": None, "volumes": 5}, "limit")
    equal((nlp["quota"], teams["lab"]["version"]), ("fair", 3), "what has no column there")


def test_users_and_tokens_are_there():
    answer = server.call("GET", "/v1/users/ada", token=TOKENS["ada"])
    equal((answer.status, answer.json["teams"]), (200, ["nlp"]), "ada")
    tokens = server.get("/v1/tokens")["tokens"]
    equal([(t["id"], t["user"], t["label"]) for t in tokens],
          [(30, "admin", "laptop"), (31, "ada", "laptop")], "tokens")


def test_ended_work_is_there():
    done, broken = server.workload(10), server.workload(11)
    equal((done["name"], done["state"], done["exit_code"], done["owner"]),
          ("done", "succeeded", 0, "ada"), "done")
    equal((ms(done["started_at"]), ms(done["ended_at"])), (T + 1000, T + 61_000), "its times")
    equal((broken["team"], broken["state"], broken["exit_code"], broken["message"]),
          ("gone", "failed", 3, "exit code 3"), "of a team that is gone")


def test_what_was_metered_is_there():
    rows = server.get("/v1/workloads/10/allocations")["allocations"]
    equal([(r["id"], r["devices"], ms(r["started_at"]), ms(r["ended_at"]), r["busy_ms"],
            r["known_ms"], r["release"]) for r in rows],
          [(20, [0], T + 1000, T + 61_000, 45_000, 60_000, None)], "allocations")
    usage = {u["team"]: u for u in server.get(f"/v1/usage?from={T}&to={T + 100_000}")["teams"]}
    equal(usage["gone"]["allocated_gpu_ms"], 2000, "of a team that is gone")
    equal(usage["gone"]["unknown_gpu_ms"], 2000, "nobody measured it")
    equal(usage["nlp"]["busy_gpu_ms"], 45_000, "busy")
    expect(usage["nlp"]["allocated_gpu_ms"] >= 60_000, f"{usage}")


def test_events_are_there_and_name_nobody():
    events = server.get("/v1/events?after=0&limit=4")["events"]
    equal([(e["seq"], e["type"], ms(e["time"])) for e in events],
          [(e[0], e[2], e[1]) for e in EVENTS], "events")
    told = TOLD.split(", for")[0]
    equal([events[2]["message"], server.workload(12)["message"]], [told, told], "messages")


def test_the_node_is_drained_still():
    node = server.get(f"/v1/nodes/{NODE}")
    equal((node["id"], node["drained"], len(node["devices"])), (7, True, 2), "node")
    # What ran there is lost: its hold ends, and it waits again.
    server.wait_state(14, "pending")
    rows = server.get("/v1/workloads/14/allocations")["allocations"]
    equal([(r["id"], r["release"], ms(r["ended_at"]) >= T + 9000) for r in rows],
          [(22, "lost", True)], "the hold of what is lost")


def test_what_waited_runs():
    equal(server.call("POST", f"/v1/nodes/{NODE}/undrain").status, 200, "undrain")
    for ident in (12, 13, 14):
        equal(server.wait_state(ident, "succeeded")["exit_code"], 0, str(ident))
    new = server.submit(team="nlp", gpus=1, command=["true"])
    expect(new["id"] > 14, f"a number is given out again: {new}")
    server.wait_state(new["id"], "succeeded")


def test_it_starts_again():
    equal(server.stop(), 0, "exit status")
    server.start()
    equal([server.state(i) for i in (10, 11, 12, 13, 14)],
          ["succeeded", "failed", "succeeded", "succeeded", "succeeded"], "states")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
