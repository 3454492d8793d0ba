#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=120
"""Clients that want more than is theirs: rights that have gone, places of others."""
import json
import os
import resource
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import Failure, Server, equal, expect, wait_for  # noqa: E402

server = Server(simulate="8xH100")


def connect():
    host, port = server.address.split("//")[1].rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=10)
    return connection


def head(method, path, token, *more):
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {token}", *more]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def read_until(connection, text, seconds=45):
    """Everything that comes until TEXT, the end of the connection, or the time is over."""
    got, end = b"", time.monotonic() + seconds
    while text not in got and time.monotonic() < end:
        connection.settimeout(max(0.01, end - time.monotonic()))
        try:
            part = connection.recv(65536)
        except socket.timeout:
            break
        except ConnectionError:
            part = b""
        if not part:
            return got + b"<end>"
        got += part
    return got


def new_token(user="ann"):
    answer = server.call("POST", "/v1/tokens", {"user": user})
    equal(answer.status, 201, "status")
    return answer.json


def revoke(token):
    equal(server.call("DELETE", f"/v1/tokens/{token['id']}").status, 204, "status")


def exec_frame(text):
    return b"i" + len(text).to_bytes(4, "big") + text


def long_job(team):
    job = server.submit(team=team, command=["sleep", "600"], cpu="100m")["id"]
    wait_for("its task", lambda: server.workload(job)["started_at"])
    return job


def open_session(token, job):
    body = json.dumps({"command": ["sh"]})
    connection = connect()
    connection.sendall(head("POST", f"/v1/workloads/{job}/tasks/0/exec", token,
                            "Connection: Upgrade", "Upgrade: allot-exec",
                            f"Content-Length: {len(body)}") + body.encode())
    answer = read_until(connection, b"\r\n\r\n")
    expect(b" 101 " in answer, f"no session: {answer!r}")
    connection.sendall(exec_frame(b"echo on$((40 + 2))e\n"))
    expect(b"on42e" in read_until(connection, b"on42e"), "the session does not answer")
    return connection


def open_stream(token):
    stream = connect()
    stream.sendall(head("GET", "/v1/events", token, "Accept: text/event-stream"))
    expect(b"retry:" in read_until(stream, b"retry:"), "no stream")
    return stream


def test_start():
    server.start()
    server.team("lab")
    server.team("other")
    server.team("red", gpu=4, parent="lab")
    server.team("blue", gpu=4, parent="lab")
    equal(server.call("PUT", "/v1/users/ann", {"role": "member", "teams": ["lab"]}).status, 200)


def test_a_body_that_comes_after_its_token_was_revoked():
    token = new_token()
    body = json.dumps({"team": "red", "name": "too-late", "command": ["true"]}).encode()
    connection = connect()
    connection.sendall(head("POST", "/v1/workloads", token["token"],
                            f"Content-Length: {len(body)}") + body[:9])
    time.sleep(0.2)
    revoke(token)
    time.sleep(1.2)
    connection.sendall(body[9:])
    answer = read_until(connection, b"\r\n\r\n")
    expect(answer.startswith(b"HTTP/1.1 401 "), f"answer {answer[:80]!r}")
    equal(server.call("GET", "/v1/workloads/too-late").status, 404, "status")


def test_a_session_ends_with_its_token():
    job = long_job("red")
    token, other = new_token(), new_token()
    connection = open_session(token["token"], job)
    stays = open_session(other["token"], job)
    revoke(token)
    expect(read_until(connection, b"<never>").endswith(b"<end>"), "the session goes on")
    stays.sendall(exec_frame(b"echo still$((40 + 2))\n"))
    expect(b"still42" in read_until(stays, b"still42"), "the other session has ended, too")
    stays.close()
    server.allot("stop", str(job), check=False)


def test_streams_and_sessions_end_when_a_team_moves_away():
    job = long_job("blue")
    token = new_token()["token"]
    stream, session = open_stream(token), open_session(token, job)
    equal(server.call("PUT", "/v1/teams/blue", {"guarantee": {"gpu": 4}, "parent": "other"}).status,
          200, "status")
    expect(read_until(session, b"<never>").endswith(b"<end>"), "the session goes on")
    last_chunk = b"\r\n0\r\n\r\n"
    expect(last_chunk in read_until(stream, last_chunk), "the stream goes on")
    server.allot("stop", str(job), check=False)


def test_connections_that_only_keep_a_place():
    wanted = 3000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted + 100:
        raise tap.Skip("too few descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted + 100), hard))
    host, port = server.address.split("//")[1].rsplit(":", 1)
    idle = []
    for _ in range(wanted):
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex((host, int(port)))
        idle.append(connection)
    started = time.monotonic()

    def answered():
        try:
            return server.call("GET", "/v1/status", timeout=5).status == 200
        except OSError:
            return False
    wait_for("an answer beside them", answered, 20)
    took = time.monotonic() - started
    for connection in idle:
        connection.close()
    if took > 15:
        raise Failure(f"an answer took {took:.1f} s")


def test_the_server_is_well():
    equal(server.stop(), 0, "exit status")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
