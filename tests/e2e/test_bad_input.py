#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=120
"""Hostile and wrong input, through the API and the command line: a clear error, never a crash."""
import json
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import ALLOT, Server, equal, expect  # noqa: E402

server = Server(simulate="8xH100")
BAD = (400, 422)


def problem(answer, status, *words):
    """It is a problem document with this status, and says these words."""
    statuses = status if isinstance(status, tuple) else (status,)
    expect(answer.status in statuses, f"status {answer.status}, wanted {status}: {answer.body}")
    body = answer.json
    expect(body.get("code") and body.get("detail"), f"no code or detail: {body}")
    text = json.dumps(body, ensure_ascii=False)
    for word in words:
        expect(word in text, f"the error does not say {word!r}: {text}")
    expect(server.process.poll() is None, "the server has died")


def post(body, **more):
    return server.call("POST", "/v1/workloads", body, **more)


def job(**more):
    return {"team": "t", "command": ["true"], **more}


def test_start():
    server.start()
    server.team("t", gpu=4)


def test_truncated_json():
    whole = json.dumps(job(name="x", gpus=1))
    for end in range(0, len(whole)):
        problem(post(whole[:end], headers={"Content-Type": "application/json"}), (400, BAD))


def test_hostile_json():
    for text in ("[" * 100000, '{"a":' * 5000, "nul", "{}{}", '{"team":"t","team":"u"}',
                 b'{"team":"\xff\xfe"}', b"\x00\x01\x02", '{"team":"t\\u0000"}', "[[]]", "42",
                 '"text"', "null", '{"command":' + "[" * 40 + "]" * 40 + "}"):
        problem(post(text, headers={"Content-Type": "application/json"}), (400, BAD))


def test_wrong_types():
    for field, value in (("command", "true"), ("command", [1]), ("command", []), ("gpus", "x"),
                         ("gpus", [1]), ("gpus", {}), ("tasks", "6x"), ("env", ["A=B"]),
                         ("env", {"A": 1}), ("team", 7), ("name", {}), ("priority", "high"),
                         ("preemptible", "perhaps"), ("class", "gold"), ("kind", "pod"),
                         ("gpu_type", 5), ("max_run_time", "soon"), ("groups", "none")):
        problem(post(job(**{field: value})), BAD, field)


def test_unknown_fields_are_named():
    problem(post(job(gpuz=1)), BAD, "gpuz")
    problem(post(job(preemption={"graze": "1s"})), BAD, "graze")
    problem(server.call("PUT", "/v1/teams/t", {"guarantees": {}}), BAD, "guarantees")
    problem(server.call("GET", "/v1/workloads?colour=red"), (400, BAD), "colour")


def test_quantities():
    for field in ("gpus", "gpu", "tasks", "cpu"):
        for text in ("-1", "1e30", "0.0001", "9223372036854775808", "NaN", "0x10", "1..2", " 1"):
            raw = json.dumps(job())[:-1] + f',"{field}":"{text}"}}'
            problem(post(raw, headers={"Content-Type": "application/json"}), BAD, field)
        for text in ("-1", "1e30", "9223372036854775808", "99999999999999999999999"):
            raw = json.dumps(job())[:-1] + f',"{field}":{text}}}'
            problem(post(raw, headers={"Content-Type": "application/json"}), BAD, field)
    problem(post(job(memory="-5GiB")), BAD, "memory")
    problem(post(job(memory="99999999999PiB")), BAD, "memory")
    problem(post(job(gpu_memory="0")), BAD, "gpu_memory")


def test_large_bodies():
    big = json.dumps(job(env={"A": "x" * (10 << 20)}))
    problem(post(big, headers={"Content-Type": "application/json"}), (400, 413, 422))
    problem(server.call("PUT", "/v1/teams/t", "x" * (10 << 20)), (400, 413, 422))
    equal(server.call("GET", "/v1/healthz").status, 200, "health afterwards")


def test_names():
    for name in ("../etc", "a/b", ".hidden", "-dash", "tab\tname", "nl\nname", "nul\0name", "",
                 " blank", "blank ", "x" * 300, "\u202eevil", "esc\x1b[31m"):
        answer = post(job(name=name))
        problem(answer, BAD, "NUL" if "\0" in name else "name")
    for name in ("模型-训练", "café", "naïve.v2", "Ünïcödé_1"):
        answer = post(job(name=name, gpus=1))
        equal(answer.status, 201, f"name {name}")
        equal(answer.json["name"], name, "name kept")


def test_team_names_in_paths():
    for path in ("..%2f..%2fetc", "%00", "a%0ab", "%ff%fe", "%2e%2e"):
        answer = server.call("PUT", f"/v1/teams/{path}", {})
        expect(answer.status in (400, 404, 405, BAD), f"{path}: {answer.status} {answer.body}")


def test_a_thousand_teams_deep():
    parent, refused = None, None
    for i in range(1000):
        body = {"parent": parent} if parent else {}
        answer = server.call("PUT", f"/v1/teams/deep{i}", body)
        if answer.status >= 400:
            refused = answer
            break
        parent = f"deep{i}"
    expect(refused, "a thousand levels were accepted")
    problem(refused, BAD, "deep", "levels")


def test_cycles():
    server.call("PUT", "/v1/teams/a", {})
    server.call("PUT", "/v1/teams/b", {"parent": "a"})
    server.call("PUT", "/v1/teams/c", {"parent": "b"})
    problem(server.call("PUT", "/v1/teams/a", {"parent": "c"}), BAD, "ancestor")
    problem(server.call("PUT", "/v1/teams/a", {"parent": "a"}), BAD)
    problem(server.call("PUT", "/v1/teams/z", {"parent": "nobody"}), (400, 404, 422), "nobody")


def test_limit_below_guarantee():
    answer = server.call("PUT", "/v1/teams/t2", {"guarantee": {"gpu": 4}, "limit": {"gpu": 2}})
    problem(answer, BAD, "limit")


def test_never_satisfiable():
    problem(post(job(gpus=9)), BAD, "9")
    problem(post(job(gpus=1, gpu_type=["B200"])), BAD)
    problem(post(job(gpus=1, tasks=9, min_tasks=9)), BAD)
    problem(post(job(gpu_memory="81GiB")), BAD)
    problem(post(job(mig="1g.10gb")), BAD)
    problem(post(job(gpus=5, **{"class": "production"})), BAD, "guarantee")
    server.team("capped", gpu=1, limit=2)
    problem(post({**job(gpus=3), "team": "capped"}), BAD, "capped")


def test_a_batch_is_all_or_nothing():
    before = len(server.get("/v1/workloads?limit=1000")["workloads"])
    batch = {"workloads": [job(gpus=1), job(gpus=1), job(gpus=99)]}
    problem(post(batch), BAD, "workloads[2]")
    after = len(server.get("/v1/workloads?limit=1000")["workloads"])
    equal(after, before, "workloads after a refused batch")


def test_idempotency():
    head = {"Idempotency-Key": "once"}
    first = post(job(name="once", gpus=1), headers=head)
    again = post(job(name="once", gpus=1), headers=head)
    equal(first.status, 201, "first")
    equal((again.status, again.json["id"]), (201, first.json["id"]), "the same answer again")
    problem(post(job(name="other", gpus=1), headers=head), (409, 422))


def test_without_a_credential():
    for method, path in (("GET", "/v1/workloads"), ("POST", "/v1/workloads"),
                         ("GET", "/v1/events"), ("GET", "/v1/usage"), ("GET", "/v1/openapi.json"),
                         ("PUT", "/v1/teams/t"), ("DELETE", "/v1/teams/t")):
        for token in (None, "alt_" + "A" * 43, "x" * 5000):
            problem(server.call(method, path, token=token), 401)


def raw(text):
    host, port = server.address.split("//")[1].rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=20) as s:
        s.sendall(text)
        s.shutdown(socket.SHUT_WR)
        data = b""
        while part := s.recv(65536):
            data += part
    return data


def test_broken_http():
    for text in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01" * 50,
                 b"POST /v1/workloads HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
                 b"POST /v1/workloads HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999"
                 b"\r\n\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                 b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n"):
        try:
            raw(text)
        except OSError:
            pass  # hanging up is a fine answer
        equal(server.call("GET", "/v1/healthz").status, 200, f"health after {text[:40]!r}")


def apply(text):
    return server.allot("apply", "-f", "-", stdin=text, check=False)


def test_hostile_manifests():
    bombs = "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n"
    for text in (bombs, "kind: ResourceQuota\nmetadata: {", "- - - -", "kind: Pod\n",
                 "kind: Team\nmetadata: {name: ../x}\nspec: {}\n", "{" * 1000, "\x00",
                 "kind: Team\nmetadata: {name: x}\nspec: {guarantee: {gpu: -1}}\n",
                 "kind: Team\nmetadata: {name: x}\nspec: {guarantee: {gpu: 1e30}}\n",
                 "kind: Team\nmetadata: {name: x}\nspec: {colour: red}\n",
                 "kind: Team\nkind: Team\nmetadata: {name: x}\n",
                 "kind: ResourceQuota\nmetadata: {namespace: q}\n"
                 "spec: {hard: {requests.nvidia.com/gpu: \"-8\"}}\n",
                 "kind: ResourceQuota\nmetadata: {namespace: q}\n"
                 "spec: {hard: {requests.nvidia.com/gpu: 9223372036854775808}}\n"):
        done = apply(text)
        expect(done.returncode not in (0, -6, -11), f"{text[:40]!r} -> {done}")
        expect(done.stderr.startswith("allot: "), f"no clear error: {done.stderr!r}")


def test_command_line():
    for words in (["frobnicate"], ["run"], ["ps", "--colour"], ["logs"], ["why", "999999"],
                  ["run", "--gpu", "1.5.2", "--team", "t", "--", "true"],
                  ["run", "--gpus", "-1", "--team", "t", "--", "true"],
                  ["show", "no-such-thing"], ["stop", "../x"], ["node", "drain", "nowhere"]):
        done = server.allot(*words, check=False)
        expect(0 < done.returncode < 128, f"{words}: exit {done.returncode}")
        expect("allot: " in done.stderr, f"{words}: {done.stderr!r}")


def test_output_that_is_lost_is_said():
    number = str(server.submit(**job(gpus=1, command=["seq", "30000"]))["id"])
    server.wait_state(int(number), "succeeded")
    for words in (["ps", "--all"], ["ps", "--all", "-o", "json"], ["version"], ["help"],
                  ["run", "--help"], ["completion", "bash"], ["logs", number],
                  ["logs", "-f", number], ["events"], ["events", "-f"], ["why", number],
                  ["export", "history"], ["sim", "scenarios", "--help"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([ALLOT, *words], env=server.environment(), stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        equal(done.returncode, 1, f"{words}: {done.stderr}")
        equal(done.stderr.count("standard output could not be written"), 1,
              f"{words}: {done.stderr}")
        equal(done.stderr.count("allot: "), 1, f"{words}: {done.stderr}")


def test_port_in_use():

    done = subprocess.run([ALLOT, "server", "--listen", server.address.split("//")[1], "--data",
                           os.path.join(server.folder, "other"), "--simulate", "1xH100"],
                          capture_output=True, text=True, timeout=30, check=False)
    expect(done.returncode != 0, "a second server took the same port")
    expect(server.address.split("//")[1] in done.stderr, f"it does not name it: {done.stderr}")


def test_the_store_belongs_to_one_server():

    done = subprocess.run([ALLOT, "server", "--listen", "127.0.0.1:0", "--data", server.data,
                           "--simulate", "1xH100"], capture_output=True, text=True, timeout=30,
                          check=False)
    expect(done.returncode != 0, "a second server opened the store")
    expect(str(server.process.pid) in done.stderr, f"the holder is not named: {done.stderr}")


def test_data_folder_not_writable():

    path = "/proc/nowhere"
    done = subprocess.run([ALLOT, "server", "--listen", "127.0.0.1:0", "--data", path,
                           "--simulate", "1xH100"], capture_output=True, text=True, timeout=30,
                          check=False)
    expect(done.returncode != 0 and path in done.stderr, f"{done}")


def test_times_that_cannot_be_written_down():
    name = server.get("/v1/nodes")["nodes"][0]["name"]
    for window in ({"until": 2**63 - 1}, {"until": 253402300800000},
                   {"from": 253402300800000, "until": 253402300800001}, {"until": -1},
                   {"until": "10000-01-01T00:00:00Z"}):
        problem(server.call("POST", f"/v1/nodes/{name}/maintenance", window), BAD)
    problem(server.call("GET", f"/v1/usage?to={2**63 - 1}"), BAD)
    expect(server.get("/v1/nodes")["nodes"][0].get("maintenance") is None, "it has maintenance")


def test_the_server_is_well():
    equal(server.get("/v1/status")["store"]["ok"], True, "store")
    equal(server.stop(), 0, "exit status")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
