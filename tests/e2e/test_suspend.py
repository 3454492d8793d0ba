#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=180
"""Workloads give their GPUs back while they live, and have them again with their next call."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.driver import CONTEXT, DRIVER, GIB, used  # noqa: E402
from e2e.harness import Server, equal, expect, wait_for  # noqa: E402

# Takes memory, and calls the driver once more for each file that is put into its home.
LAB = DRIVER + """
context()
print("took", take(GIB))
n = 0
while not os.path.exists(os.environ["HOME"] + "/end"):
    if os.path.exists(os.environ["HOME"] + f"/call-{n}"):
        print("called", n, take(1 << 20))
        n += 1
    time.sleep(0.01)
""".replace("GIB", str(GIB))

server = Server(simulate="1xH100")
labs = []


def log_of(ident):
    return server.allot("logs", str(ident)).stdout


def lab(**request):
    """A notebook that has begun to use its GPU."""
    answer = server.call("POST", "/v1/workloads", {
        "team": "default", "gpus": 1, "kind": "notebook",
        "command": ["python3", "-uc", LAB], **request})
    equal(answer.status, 201, f"{answer.body}")
    ident = answer.json["id"]
    wait_for("it to use its GPU", lambda: "took 0" in log_of(ident))
    labs.append(ident)
    return ident


def touch(ident, name):
    server.allot("exec", str(ident), "--", "sh", "-c", f"touch $HOME/{name}")


def suspend(ident):
    server.allot("suspend", str(ident))
    equal(server.workload(ident)["state"], "suspended")


def called(ident, n):
    wait_for(f"call {n} to come back", lambda: f"called {n} 0" in log_of(ident))


def job(**request):
    answer = server.call("POST", "/v1/workloads", {
        "team": "default", "gpus": 1, "command": ["sleep", "600"], **request})
    equal(answer.status, 201, f"{answer.body}")
    return answer.json["id"]


def end(ident):
    server.allot("stop", str(ident), "--now")
    server.wait_state(ident, "cancelled")


def test_a_training_job_has_the_gpu_of_an_idle_notebook():
    server.start()
    ident = lab(name="lab")
    equal(used(server), [GIB + CONTEXT])
    suspend(ident)
    equal(used(server), [0])
    equal(server.workload(ident)["tasks_detail"][0]["devices"], [])
    train = job(name="train")
    server.wait_state(train, "running")


def test_its_next_call_asks_for_the_gpu_and_waits():
    ident, train = labs[0], server.allot_json("show", "train")["id"]
    touch(ident, "call-0")
    server.wait_state(ident, "pending")
    x = server.get(f"/v1/workloads/{ident}/explain")
    equal([h["name"] for h in x["holders"]], ["train"], f"{x}")
    expect("called" not in log_of(ident), log_of(ident))
    end(train)
    server.wait_state(ident, "running")
    called(ident, 0)
    equal(used(server), [GIB + CONTEXT + (1 << 20)], "what it held before, and what it asked for")


def test_a_person_may_bring_it_back():
    ident = labs[0]
    suspend(ident)
    server.allot("resume", str(ident))
    server.wait_state(ident, "running")
    equal(server.workload(ident)["restarts"], 0)
    touch(ident, "call-1")
    called(ident, 1)


def test_it_is_charged_for_what_it_has():
    ident = labs[0]
    rows = server.get(f"/v1/workloads/{ident}/allocations")["allocations"]
    equal([r["gpu"] for r in rows], [1, 0, 1, 0, 1], f"{rows}")
    equal([r["release"] for r in rows if r["release"]],
          ["suspended", "resumed", "suspended", "resumed"], f"{rows}")


def test_killed_with_the_server_it_sleeps_on():
    ident = labs[0]
    suspend(ident)
    server.kill()
    server.start()
    equal(server.workload(ident)["state"], "suspended")
    equal(used(server), [0])
    other = job()
    server.wait_state(other, "running")
    server.kill()
    server.start()
    touch(ident, "call-2")
    server.wait_state(ident, "pending")
    server.kill()
    server.start()
    end(other)
    called(ident, 2)


def test_killed_while_it_falls_asleep_or_wakes():
    ident = labs[0]
    for n in range(3, 13):
        server.call("POST", f"/v1/workloads/{ident}/suspend")
        time.sleep(0.003 * (n - 3))
        server.kill()
        server.start()
        wait_for("it to be one or the other",
                 lambda: server.workload(ident)["state"] in ("running", "suspended"))
        touch(ident, f"call-{n}")
        called(ident, n)
        server.wait_state(ident, "running")


def test_it_can_be_stopped_while_it_sleeps():
    ident = labs[0]
    suspend(ident)
    end(ident)
    equal(server.workload(ident)["tasks_detail"][0]["exit_code"], 137)
    equal(used(server), [0])


def test_its_program_may_end_while_it_sleeps():
    ident = lab()
    suspend(ident)
    touch(ident, "end")
    server.wait_state(ident, "succeeded")
    other = job()
    server.wait_state(other, "running")
    end(other)


def test_who_has_to_give_way_sleeps_if_that_was_asked_for():
    low = lab(kind="job", **{"class": "batch", "preemption": {"handling": "suspend"}})
    high = job()
    server.wait_state(high, "running")
    state = server.workload(low)
    equal((state["state"], state["restarts"]), ("pending", 0), f"{state}")
    expect("training" in state["message"] or "gave way" in state["message"], state["message"])
    equal(used(server), [0])
    end(high)
    server.wait_state(low, "running")
    touch(low, "call-0")
    called(low, 0)
    equal(server.workload(low)["restarts"], 0, "it has lost nothing")
    end(low)


MANAGED = LAB.replace("take(%d)" % GIB, 'call("cuMemAllocManaged", ctypes.byref('
                      'ctypes.c_uint64()), ctypes.c_size_t(%d), 1)' % GIB)


def test_who_cannot_sleep_gives_way_as_others_do():
    low = lab(kind="job", command=["python3", "-uc", MANAGED],
              **{"class": "batch", "preemption": {"handling": "suspend", "grace": "1s"}})
    high = job()
    server.wait_state(high, "running")
    server.wait_state(low, "pending")
    state = server.workload(low)
    equal(state["restarts"], 1, f"{state}")
    end(high)
    server.wait_state(low, "running")
    end(low)


def test_what_cannot_sleep_says_why():
    plain = job()
    server.wait_state(plain, "running")
    answer = server.call("POST", f"/v1/workloads/{plain}/suspend")
    equal((answer.status, answer.json["code"]), (409, "conflict"), f"{answer.body}")
    expect("--handling suspend" in answer.json["remedy"], f"{answer.body}")
    end(plain)
    ident = lab(command=["python3", "-uc", MANAGED])
    text = server.allot("suspend", str(ident), check=False)
    equal(text.returncode, 1)
    expect("could not be suspended: it uses managed memory" in text.stderr, text.stderr)
    equal(server.workload(ident)["state"], "running")
    touch(ident, "call-0")
    called(ident, 0)
    end(ident)


def test_one_that_is_not_suspended_cannot_be_resumed():
    ident = lab()
    equal(server.call("POST", f"/v1/workloads/{ident}/resume").status, 202, "it has its GPU")
    end(ident)
    equal(server.call("POST", f"/v1/workloads/{ident}/resume").status, 409)
    equal(server.call("POST", f"/v1/workloads/{ident}/suspend").status, 409)
    equal(server.call("POST", "/v1/workloads/999/suspend").status, 404)


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
