#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=240
"""Notebooks are suspended, resumed and stopped, wake, give way, and lose server, agent and
supervisor in any order; then everything adds up. ALLOT_SEED=N plays one order again."""
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.driver import DRIVER, used  # noqa: E402
from e2e.harness import (SANITIZED, Failure, Server, check_devices, equal, expect,  # noqa: E402
                         supervisors, wait_for)

SECONDS = 25 if not SANITIZED else 15
SEED = int(os.environ.get("ALLOT_SEED", random.randrange(1 << 30)))

# Uses its GPU now and then, for ever.
LAB = DRIVER + """
import random
context()
print("took", take(1 << 30))
while True:
    time.sleep(random.random() * PAUSE)
    block = ctypes.c_uint64()
    if call("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(1 << 20)) == 0:
        call("cuMemFree_v2", block)
"""

server = Server(simulate="2xH100")
rng = random.Random(SEED)
labs, everything = [], []


def start(**request):
    answer = server.call("POST", "/v1/workloads", {"team": "default", **request})
    equal(answer.status, 201, f"{answer.body}")
    everything.append(answer.json["id"])
    return answer.json["id"]


def lab():
    program = LAB.replace("PAUSE", rng.choice(["0.1", "2", "60"]))
    form = rng.choice([{"gpus": 1}, {"gpu": 0.5}, {"gpu": 0.25}, {"gpu_memory": "20GiB"}])
    labs.append(start(kind="notebook", command=["python3", "-uc", program],
                      preemption={"handling": rng.choice(["suspend", "restart"]), "grace": "1s"},
                      **form))


def ask(verb):
    if labs:
        server.call("POST", f"/v1/workloads/{rng.choice(labs)}/{verb}")


def stop():
    if len(labs) > 6:
        ident = labs.pop(rng.randrange(len(labs)))
        server.call("POST", f"/v1/workloads/{ident}/stop", {"grace": "100ms"})


def burst():
    """Higher work, for a moment."""
    start(gpus=1, command=["sleep", "0.5"], priority=10, max_run_time="5s")


def kill_server():
    server.kill()
    server.start()


def kill_supervisor():
    pids = supervisors(server.folder)
    if pids:
        os.kill(rng.choice(pids), signal.SIGKILL)


def kill_agent():
    """It is a child of the server."""
    for task in os.listdir(f"/proc/{server.process.pid}/task"):
        with open(f"/proc/{server.process.pid}/task/{task}/children") as f:
            for pid in f.read().split():
                with open(f"/proc/{pid}/comm") as comm:
                    if comm.read().strip() == "allot-gpu-agent":
                        os.kill(int(pid), signal.SIGKILL)


def drain():
    name = server.get("/v1/nodes")["nodes"][0]["name"]
    server.call("POST", f"/v1/nodes/{name}/drain")
    time.sleep(rng.random() * 0.2)
    server.call("POST", f"/v1/nodes/{name}/undrain")


ACTS = [(lambda: ask("suspend"), 30), (lambda: ask("resume"), 15), (lab, 6), (stop, 5), (burst, 5),
        (kill_server, 2), (kill_agent, 4), (kill_supervisor, 2), (drain, 2)]


def test_a_storm():
    print(f"# seed {SEED}")
    server.start()
    for _ in range(6):
        lab()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            rng.choices([a for a, _ in ACTS], [w for _, w in ACTS])[0]()
        except OSError as e:
            raise Failure(f"{e}: {server.log()[-3000:]}") from e
        time.sleep(rng.random() * 0.1)
    expect(server.alive(), server.log()[-3000:])


def test_nothing_is_stuck():
    for ident in list(labs):
        server.call("POST", f"/v1/workloads/{ident}/suspend")
    # Whatever it is now, it can be ended, and what waits comes to its turn.
    while labs:
        ident = labs.pop(rng.randrange(len(labs)))
        server.call("POST", f"/v1/workloads/{ident}/stop", {"grace": "100ms"})
    for ident in everything:
        wait_for(f"workload {ident} to end", lambda: server.workload(ident)["ended_at"])
    equal(used(server), [0, 0], "what the driver has given")
    wait_for("all supervisors to be gone", lambda: not supervisors(server.folder))


def test_nothing_was_held_twice():
    rows = []
    for ident in everything:
        rows += server.allocations(ident)
    expect(len(rows) > 20, f"only {len(rows)} allocations")
    check_devices(rows)
    equal([r for r in rows if r["end"] is None], [], "allocations that are open")
    for ident in everything:
        own = sorted(server.allocations(ident), key=lambda r: r["begin"])
        for before, after in zip(own, own[1:]):
            expect(before["end"] <= after["begin"], f"{ident}: {before} {after}")


def test_a_whole_gpu_is_there_again():
    ident = start(gpus=2, command=["true"])
    server.wait_state(ident, "succeeded")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
