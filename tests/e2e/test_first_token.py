#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=120
"""The token of the first start: kept out of logs, and gone once it is revoked."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import Server, equal, expect  # noqa: E402

server = Server(simulate="1xH100")


def restart():
    server.stop()
    server.start()


def labels():
    return sorted(t["label"] for t in server.get("/v1/tokens")["tokens"])


def test_no_log_has_it():
    server.start()
    restart()
    expect(len(server.token) > 20, "there is no token")
    expect(server.token not in server.log(), "the token is in the log")


def test_a_revoked_one_does_not_come_back():
    server.call("PUT", "/v1/users/second", {"role": "admin"})
    other = server.call("POST", "/v1/tokens", {"user": "second", "label": "other"}).json["token"]
    first = next(t for t in server.get("/v1/tokens")["tokens"] if t["label"] != "other")
    equal(server.call("DELETE", f"/v1/tokens/{first['id']}").status, 204, "revoke")
    restart()
    equal(server.call("GET", "/v1/tokens").status, 401, "the revoked token")
    server.token = other
    equal(labels(), ["other"], "tokens")
    equal(server.call("DELETE", "/v1/users/admin").status, 204, "delete the first user")
    restart()
    server.token = other
    equal([u["name"] for u in server.get("/v1/users")["users"]], ["second"], "users")


def test_a_lost_file_is_made_again():
    os.unlink(os.path.join(server.data, "admin-token"))
    restart()
    equal(len(labels()), 2, "tokens")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
