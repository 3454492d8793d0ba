#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=120
"""Tenants that name folders and images they can change while they are looked at."""
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import Server, equal, expect, wait_for  # noqa: E402

server = Server(simulate="8xH100")
shared = None
SWAP = """
import ctypes, os
os.makedirs("a/allot-test-hit", exist_ok=True)
os.symlink("/oldroot/mnt", "b")
libc = ctypes.CDLL(None)
print("up", flush=True)
while True:
    libc.renameat2(-100, b"a", -100, b"b", 2)
"""


def log(job):
    return server.call("GET", f"/v1/workloads/{job}/logs").body.decode(errors="replace")


def run(script, team="red", state="succeeded", **spec):
    job = server.submit(team=team, command=["sh", "-c", script], cpu="100m", max_retries=0, **spec)
    return server.wait_state(job["id"], state), log(job["id"])


def test_start():
    global shared
    if os.geteuid() != 0:
        raise tap.Skip("tasks are started by root")
    os.chmod(server.folder, 0o755)
    shared = tempfile.mkdtemp(prefix="shared-", dir=server.folder)
    os.chmod(shared, 0o1777)
    server.start()
    server.team("red", gpu=4)
    server.team("blue", gpu=4)


def test_an_image_that_is_a_pipe_keeps_nobody_waiting():
    run("mkdir lay && mkfifo -m 666 lay/index.json && chmod 755 lay", workdir=shared)
    stuck = server.submit(team="red", command=["true"], image=f"oci:{shared}/lay:v1",
                          max_retries=0)["id"]
    other = server.submit(team="blue", command=["true"], image="oci:/nowhere:v1",
                          max_retries=0)["id"]
    for job in (stuck, other):
        wait_for("its refusal", lambda j=job: "image layout" in (server.workload(j)["message"]
                                                                or ""), 20)


def test_a_folder_of_a_shared_place_works():
    os.makedirs(f"{shared}/mine/deep")
    os.chmod(f"{shared}/mine/deep", 0o777)
    _, text = run("pwd; echo x > file; echo y > $ALLOT_CHECKPOINT_DIR/c; ls -A ..",
                  workdir=f"{shared}/mine/deep", checkpoint_dir=f"{shared}/mine/deep/ck")
    equal(text, f"{shared}/mine/deep\ndeep\n", "output")
    expect(os.path.exists(f"{shared}/mine/deep/file"), "the file has gone")
    expect(os.path.exists(f"{shared}/mine/deep/ck/c"), "the checkpoint has gone")


def test_a_path_that_is_swapped_makes_nothing_on_the_machine():
    hit = "/mnt/allot-test-hit"
    expect(not os.path.exists(hit), f"{hit} is there already")
    swapper = server.submit(team="red", command=["python3", "-c", SWAP], workdir=shared,
                            cpu="1")["id"]
    wait_for("the swapper", lambda: "up" in log(swapper))
    try:
        for turn in range(4):
            jobs = [server.submit(team="red", command=["true"], cpu="10m", max_retries=0,
                                  workdir=f"{shared}/a/allot-test-hit")["id"] for _ in range(8)]
            for job in jobs:
                wait_for("its end", lambda j=job: server.state(j) in ("succeeded", "failed")
                         or server.workload(j)["message"])
            expect(not os.path.exists(hit), f"round {turn}: the sandbox was led to make {hit}")
            for job in jobs:
                server.call("POST", f"/v1/workloads/{job}/stop", {"grace": "0s"})
    finally:
        if os.path.isdir(hit):
            os.rmdir(hit)
        server.call("POST", f"/v1/workloads/{swapper}/stop", {"grace": "0s"})


def test_the_server_is_well():
    equal(server.stop(), 0, "exit status")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        if shared:
            shutil.rmtree(shared, ignore_errors=True)
        server.close()
