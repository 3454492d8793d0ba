# SPDX-License-Identifier: Apache-2.0
"""Runs the real server and command line for end-to-end tests and the demo. Standard library only.

    with Server() as server:
        server.allot("team", "set", "nlp", "--gpu", "4")
        server.get("/v1/teams")
        server.kill()          # -9
        server.start()         # on the same data

Servers listen on a free port of the loopback interface and keep their data in a folder of their
own, which is removed together with every process that still runs from it.
"""
import datetime
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("ALLOT_BUILD_DIR", os.path.join(ROOT, "build"))
ALLOT = os.path.join(BUILD, "allot")
SANITIZED = os.path.basename(BUILD) in ("build-asan", "build-tsan")


class Failure(Exception):
    """A call that did not do what the test needs."""


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


def wait_for(what, check, seconds=60.0):
    """The first true value of CHECK; Failure after SECONDS."""
    end = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"waited {seconds:g} s in vain: {what}")
        time.sleep(0.02)


def free_port():
    """A port that stays free until it is used, and while its server is away for a moment: the
    kernel gives clients ports from 32768 on."""
    for _ in range(100):
        port = random.randrange(10000, 32768)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise Failure("no port is free")


def ms(time_text):
    """Milliseconds since 1970 of an ISO time."""
    moment = datetime.datetime.fromisoformat(time_text.replace("Z", "+00:00"))
    return round(moment.timestamp() * 1000)


def check_devices(rows):
    """No device is ever metered beyond one whole; returns milli-GPU-milliseconds of all."""
    changes, total = {}, 0
    for row in rows:
        for device in row["devices"]:
            end = row["end"] if row["end"] is not None else 1 << 62
            if end > row["begin"]:
                changes.setdefault(device, []).append((row["begin"], row["milli"]))
                changes[device].append((end, -row["milli"]))
            total += (end - row["begin"]) * row["milli"]
    for device, steps in changes.items():
        load = 0
        for at, change in sorted(steps):
            load += change
            if load > 1000:
                raise Failure(f"device {device} is metered {load} milli at {at}")
    return total


def supervisors(folder, programs=(b"allot-supervise",)):
    """Process ids of the supervisors that work in a data folder, or of other programs that are
    named with it."""
    pids = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(programs) and any(folder.encode() in w for w in words):
            pids.append(int(pid))
    return pids


class Server:
    def __init__(self, simulate="8xH100", options=(), data=None, env=None, program=ALLOT):
        self.simulate, self.options, self.program = simulate, list(options), program
        self.env = env or {}  # added to the server's environment
        # Not below /tmp or /var/tmp: tasks have private ones and would not see what is put there.
        base = os.environ.get("ALLOT_TEST_DIR", "/srv")
        self.folder = data or tempfile.mkdtemp(prefix="allot-test-", dir=base)
        self.data = os.path.join(self.folder, "data")
        self.process, self.address, self.token = None, None, None
        self.log_path = os.path.join(self.folder, "server.log")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.close()

    # ---- life ------------------------------------------------------------------------------

    def start(self, seconds=60.0):
        host_port = (self.address.split("//")[1] if self.address
                     else f"127.0.0.1:{free_port()}")
        command = [self.program, "server", "--listen", host_port, "--data", self.data,
                   *self.options]
        if self.simulate:  # else what the machine has
            command += ["--simulate", self.simulate]
        before = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL,
                                            env={**os.environ, **self.env})

        def address():
            if self.process.poll() is not None:
                raise Failure(self.fate())
            with open(self.log_path, "rb") as f:
                f.seek(before)
                found = re.search(rb"address\s+(http://\S+)", f.read())
            return found and found.group(1).decode()
        self.address = wait_for("the server to listen", address, seconds)
        wait_for("the server to answer", lambda: self.alive(), seconds)
        self.token = open(os.path.join(self.data, "admin-token")).read().strip()

    def fate(self):
        """Whether the server runs, for who has got no answer."""
        code = self.process.poll()
        if code is None:
            return "the server runs"
        return f"the server ended with {code}:\n{self.log()[-2000:]}"

    def alive(self):
        if self.process.poll() is not None:
            raise Failure(self.fate())
        try:
            return self.call("GET", "/v1/healthz", token=None).status == 200
        except OSError:
            return False

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure("the server does not stop on SIGTERM") from None

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()
        for _ in range(50):
            # A sandbox whose supervisor is killed while it is built waits for a server's cleaner.
            left = supervisors(self.folder, (b"allot-supervise", b"bwrap"))
            if not left:
                break
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.1)
        if not os.environ.get("ALLOT_TEST_KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    # ---- the API ---------------------------------------------------------------------------

    def call(self, method, path, body=None, token="", headers=None, timeout=30):
        host, port = self.address.split("//")[1].rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=timeout)
        try:
            head = {"Accept": "application/json", **(headers or {})}
            if token == "":
                token = self.token
            if token:
                head["Authorization"] = "Bearer " + token
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
                head["Content-Type"] = "application/json"
            connection.request(method, path, body, head)
            reply = connection.getresponse()
            return Answer(reply.status, dict(reply.getheaders()), reply.read())
        except ConnectionRefusedError as error:
            raise ConnectionRefusedError(f"{error}; {self.fate()}") from None
        finally:
            connection.close()

    def get(self, path):
        answer = self.call("GET", path)
        if answer.status != 200:
            raise Failure(f"GET {path}: {answer.status} {answer.body!r}")
        return answer.json

    def submit(self, **spec):
        answer = self.call("POST", "/v1/workloads", spec)
        if answer.status != 201:
            raise Failure(f"submit {spec}: {answer.status} {answer.body!r}")
        return answer.json

    def workload(self, ident):
        return self.get(f"/v1/workloads/{ident}")

    def state(self, ident):
        return self.workload(ident)["state"]

    def wait_state(self, ident, *states, seconds=120.0):
        def reached():
            workload = self.workload(ident)
            if workload["state"] in states:
                return workload
            if workload["state"] in ("succeeded", "failed", "cancelled"):
                log = self.allot("logs", str(ident), check=False).stdout[-1000:]
                raise Failure(f"{ident} has {workload['state']} ({workload['message']})\n{log}")
            return None
        return wait_for(f"{ident} to be {' or '.join(states)}", reached, seconds)

    def team(self, name, gpu=None, limit=None, **more):
        body = dict(more)
        if gpu is not None:
            body["guarantee"] = {"gpu": gpu}
        if limit is not None:
            body["limit"] = {"gpu": limit}
        answer = self.call("PUT", f"/v1/teams/{name}", body)
        if answer.status not in (200, 201):
            raise Failure(f"team {name}: {answer.status} {answer.body!r}")
        return answer.json

    def allocations(self, ident):
        """Intervals of a workload: begin and end (None = open) in ms, milli-GPU of each device."""
        rows = self.get(f"/v1/workloads/{ident}/allocations")["allocations"]
        return [{"devices": r["devices"], "attempt": r["attempt"], "begin": ms(r["started_at"]),
                 "end": ms(r["ended_at"]) if r["ended_at"] else None,
                 "milli": round(r["gpu"] * 1000) // max(1, len(r["devices"]))} for r in rows]

    # ---- the command line ------------------------------------------------------------------

    def environment(self):
        return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.folder,
                "LANG": "C.UTF-8", "ALLOT_SERVER": self.address, "ALLOT_TOKEN": self.token}

    def allot(self, *args, check=True, stdin=None, timeout=120):
        done = subprocess.run([ALLOT, *args], env=self.environment(), input=stdin, text=True,
                              capture_output=True, timeout=timeout, check=False)
        if check and done.returncode != 0:
            raise Failure(f"allot {' '.join(args)}: exit {done.returncode}\n"
                          f"{done.stdout}{done.stderr}")
        return done

    def allot_json(self, *args):
        return json.loads(self.allot(*args, "-o", "json").stdout)


def expect(value, what):
    if not value:
        raise Failure(what)


def equal(got, wanted, what=""):
    if got != wanted:
        raise Failure(f"{what}: got {got!r}, wanted {wanted!r}")
