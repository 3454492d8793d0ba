#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=600
"""What becomes of workloads that hold GPUs and do nothing."""
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.driver import DRIVER  # noqa: E402
from e2e.harness import Server, equal, expect, wait_for  # noqa: E402

server = Server(simulate="4xH100")
ids = {}

LAB = DRIVER + """
context()
print("took", take(1 << 30))
for n in range(9):
    while not os.path.exists(os.environ["HOME"] + f"/call-{n}"):
        time.sleep(0.1)
    print("called", n, take(1 << 20))
"""
# A quarter of a core: more than enough to count, and not in the way of other suites.
BUSY = """
import time
while True:
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    time.sleep(0.15)
"""
# What Jupyter's server shows of its kernel, which waits for something every now and then, and uses
# less CPU than would count.
NOTEBOOK = """
import http.server, json, os
home = os.environ["HOME"]
asked = 0

class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass
    def do_GET(self):
        global asked
        right = self.headers["Authorization"] == "token sesame"
        asked += right
        self.send_response(200 if right and self.path.startswith("/lab/api/kernels?") else 403)
        self.end_headers()
        self.wfile.write(json.dumps([{
            "id": "1", "name": "python3", "connections": 0,
            "last_activity": "2026-01-01T00:00:00.000000Z",
            "execution_state": "busy" if asked // 3 % 2 == 0 else "idle"}]).encode())

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
runtime = home + "/.local/share/jupyter/runtime"
os.makedirs(runtime)
with open(f"{runtime}/jpserver-{os.getpid()}.json", "w") as f:
    json.dump({"base_url": "/lab/", "hostname": "localhost", "pid": os.getpid(), "secure": False,
               "port": server.server_port, "sock": "", "token": "sesame"}, f, indent=2)
server.serve_forever()
"""
TALK = "import time\nwhile True: print('here', flush=True); time.sleep(1)"


def submit(name, program, **more):
    answer = server.call("POST", "/v1/workloads", {
        "team": "lab", "name": name, "gpus": 1, "command": ["python3", "-uc", program], **more})
    equal(answer.status, 201, f"{answer.body}")
    ids[name] = answer.json["id"]


def state(name):
    return server.workload(ids[name])["state"]


def events(name, kind):
    rows = server.get(f"/v1/workloads/{ids[name]}/events?limit=100")["events"]
    return [e for e in rows if e["type"] == kind]


def expect_idle_for(text, seconds):
    """TEXT says that there was no sign of life for at least that long."""
    found = re.search(r"no sign of life for (\d+)s", text)
    expect(found and int(found[1]) >= seconds, text)


def test_a_policy_is_the_teams_or_of_the_one_above():
    server.start()
    server.allot("team", "set", "research", "--guarantee", "gpu=4",
                 "--idle", "notebook=10s:suspend", "--idle", "job=10s:stop")
    server.allot("team", "set", "lab", "--parent", "research", "--guarantee", "gpu=4",
                 "--idle", "service=10s:notify:gpu")
    team = server.get("/v1/teams/research")
    equal(team["idle"], {"notebook": {"after": "10s", "action": "suspend", "signal": "any"},
                         "job": {"after": "10s", "action": "stop", "signal": "any"}})
    text = server.allot("team", "show", "research").stdout
    expect("notebook 10s: suspend" in text, text)
    server.allot("team", "set", "research", "--weight", "2")
    equal(server.get("/v1/teams/research")["idle"], team["idle"], "it stays")
    for bad in ("notebook=1s:suspend", "notebook=1h:burn", "desk=1h:stop", "notebook",
                "job=1h:stop:x"):
        done = server.allot("team", "set", "research", "--idle", bad, check=False)
        equal(done.returncode, 2, f"{bad}: {done.stderr}")


def test_who_does_nothing_is_warned_and_then_loses_its_gpu():
    submit("lab", LAB, kind="notebook")
    submit("sleeper", "import time; time.sleep(600)")
    submit("busy", BUSY)
    submit("talker", TALK, kind="service")
    server.wait_state(ids["lab"], "suspended")
    server.wait_state(ids["sleeper"], "cancelled")
    told = [e["message"] for e in events("lab", "workload.idle")]
    expect(len(told) >= 2, f"{told}")
    expect("it will be suspended in" in told[0] and "'allot extend' keeps it" in told[0], told[0])
    expect_idle_for(told[-1], 5)
    message = server.workload(ids["sleeper"])["message"]
    expect(message.startswith("stopped: "), message)
    expect_idle_for(message, 10)


def test_who_computes_or_writes_keeps_it():
    equal(state("busy"), "running")
    equal(events("busy", "workload.idle"), [])
    equal(state("talker"), "running")
    # By the GPU alone it is idle, and that is only told.
    wait_for("it to be told", lambda: events("talker", "workload.idle"))
    expect("no use of a GPU for" in events("talker", "workload.idle")[-1]["message"],
           f"{events('talker', 'workload.idle')}")


def test_a_cell_that_waits_is_a_sign_of_life():
    server.allot("team", "set", "desk", "--idle", "job=10s:notify")
    submit("cell", NOTEBOOK, team="desk")
    wait_for("an idle time that began with it",
             lambda: [e for e in events("cell", "workload.idle")
                      if e["data"]["last_signal"] == "kernel"])
    server.allot("stop", str(ids["cell"]), "--now")


def test_a_suspended_one_wakes_with_its_next_call_and_sleeps_again():
    for n in range(2):
        server.wait_state(ids["lab"], "suspended")
        server.allot("exec", str(ids["lab"]), "--", "sh", "-c", f"touch $HOME/call-{n}")
        wait_for("the call to come back",
                 lambda: f"called {n} 0" in server.allot("logs", str(ids["lab"])).stdout)
        server.wait_state(ids["lab"], "running")


def test_more_time_can_be_asked_for_and_outlives_the_server():
    server.allot("extend", "lab", "--for", "8h")
    server.allot("stop", "busy", "talker", "--now")
    submit("other", "import time; time.sleep(600)", kind="notebook")
    server.kill()
    server.start()
    # One begins to count anew, the other has its eight hours.
    server.wait_state(ids["other"], "suspended")
    equal(state("lab"), "running")
    equal(len(events("lab", "workload.extended")), 1)


def test_a_rule_made_shorter_still_warns_twice():
    server.allot("team", "set", "research", "--idle", "job=1h:stop")
    submit("patient", "import time; time.sleep(600)")
    server.wait_state(ids["patient"], "running")
    time.sleep(12)
    equal(events("patient", "workload.idle"), [])
    server.allot("team", "set", "research", "--idle", "job=10s:stop")
    server.wait_state(ids["patient"], "cancelled")
    told = [e["message"] for e in events("patient", "workload.idle")]
    equal(len(told), 2, f"{told}")
    expect("stopped in 5s" in " ".join(told), f"{told}")
    expect("stopped in 2s" in " ".join(told), f"{told}")


def test_extensions_have_their_bounds():
    answer = server.call("POST", f"/v1/workloads/{ids['lab']}/extend", {"for": "99d"})
    equal((answer.status, answer.json["field"]), (400, "for"), f"{answer.body}")
    server.allot("team", "set", "research", "--idle", "notebook=none")
    done = server.allot("extend", "lab", check=False)
    equal(done.returncode, 1)
    expect("nothing ends workload" in done.stderr, done.stderr)


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
