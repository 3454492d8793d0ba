#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=240
"""What a tenant can and cannot do, with the real server: isolation, limits, images, sessions."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import BUILD, Server, equal, expect, supervisors, wait_for  # noqa: E402

server = Server(simulate="8xH100")


def run(script, state="succeeded", team="red", **spec):
    """A job of one shell script, to its end; the workload and its log."""
    job = server.submit(team=team, command=["sh", "-c", script], gpus=1, cpu="100m", **spec)
    done = server.wait_state(job["id"], state)
    return done, log(job["id"])


def log(ident):
    return server.call("GET", f"/v1/workloads/{ident}/logs").body.decode(errors="replace")


def test_start():
    if os.geteuid() != 0:
        raise tap.Skip("tasks are started by root")
    os.chmod(server.folder, 0o755)  # what is hidden shall be hidden by the sandbox alone
    server.start()
    server.team("red", gpu=4)
    server.team("blue", gpu=4)


def test_the_node_says_how_it_isolates():
    node = server.get("/v1/nodes")["nodes"][0]
    expect(node["isolation"].startswith("bubblewrap"), node["isolation"])
    expect(node["limits"] in ("cgroup1", "cgroup2", "none"), node["limits"])


def test_the_store_and_the_token_cannot_be_read():
    _, text = run(f"ls {server.data} 2>&1; cat {server.data}/admin-token 2>&1; "
                  f"find / -name admin-token -not -path '/proc/*' 2>/dev/null; echo end")
    expect(server.token not in text, "the admin token is visible")
    expect("admin-token: No such file" in text, text)
    equal(text.splitlines()[-1], "end", "last line")


def test_people_and_daemons_are_hidden():
    _, text = run("ls -A /root /run /home /var/log | grep -v : | tr '\\n' ' '; cat /etc/shadow; "
                  "ls /proc | grep -c '^[0-9]'; ls /dev/vd* /dev/sd* /dev/mem 2>/dev/null | wc -l",
                  state="succeeded")
    lines = text.split("\n")
    equal(sorted(lines[0].split()[:2]), ["allot", "task"], "what /run and /home hold")
    expect("Permission denied" in text, "the password file can be read")
    expect(int(lines[-3]) < 10, f"processes: {text}")
    equal(lines[-2], "0", "devices")


def test_one_team_cannot_reach_the_checkpoints_of_another():
    job, _ = run("echo secret > $ALLOT_CHECKPOINT_DIR/model; id -u")
    path = f"{server.data}/checkpoints/{job['id']}"
    expect(os.path.exists(path + "/model"), "the checkpoint has gone")
    owner = os.stat(path).st_uid
    expect(owner > 100000, f"owner {owner}")
    _, text = run(f"id -u; ls {path} 2>&1; ls -A $ALLOT_CHECKPOINT_DIR", team="blue")
    expect("model" not in text and "secret" not in text, text)
    expect(int(text.split()[0]) != owner, "both teams run as the same user")
    for open_now in (server.data, f"{server.data}/checkpoints", path):
        os.chmod(open_now, 0o777)
    refused = server.submit(team="blue", command=["true"], checkpoint_dir=path)
    wait_for("the reason of the refusal",
             lambda: "platform's own folder" in (server.workload(refused["id"])["message"] or ""))
    server.allot("stop", str(refused["id"]), check=False)
    os.chmod(server.data, 0o700)


def test_the_machine_cannot_be_changed():
    _, text = run("touch /usr/x /etc/x /x 2>/dev/null && echo wrote; mount -t tmpfs x /mnt "
                  "2>/dev/null && echo mounted; unshare -Ur true 2>/dev/null && echo unshared; "
                  "kill -9 1; nice -n -5 true 2>/dev/null; grep -c 'NoNewPrivs.*1' "
                  "/proc/self/status")
    equal(text, "1\n", "log")


def test_too_much_memory_is_named_as_the_reason():
    if server.get("/v1/nodes")["nodes"][0]["limits"] == "none":
        raise tap.Skip("no control groups here")
    done, _ = run("exec python3 -c 'bytearray(1 << 30)'", state="failed", memory="64MiB")
    equal(done["exit_code"], 137, "exit code")
    expect("out of memory" in done["message"], done["message"])


def test_a_thousand_children_do_not_outlive_their_task():
    job = server.submit(team="red", cpu="100m", command=[
        "sh", "-c", "trap '' TERM; for i in $(seq 1000); do sleep 8888.1 & done; echo up; wait"])
    wait_for("the children", lambda: "up" in log(job["id"]))
    server.allot("stop", str(job["id"]), "--grace", "1s", check=False)
    server.wait_state(job["id"], "cancelled", "failed")
    left = subprocess.run(["pgrep", "-fc", "sleep 8888.1"], capture_output=True, text=True,
                          check=False).stdout.strip()
    equal(left, "0", "processes left")


def test_a_killed_supervisor_is_retried():
    job = server.submit(team="red", command=["sh", "-c", "echo $ALLOT_RESTART_COUNT; sleep 8888.2"],
                        cpu="100m")
    server.wait_state(job["id"], "running")
    wait_for("the first line", lambda: "0" in log(job["id"]))
    for pid in supervisors(server.folder):
        os.kill(pid, signal.SIGKILL)
    wait_for("the second attempt", lambda: "1" in log(job["id"]))
    left = subprocess.run(["pgrep", "-fc", "^sleep 8888.2"], capture_output=True, text=True,
                          check=False).stdout.strip()
    equal(left, "1", "processes")
    server.allot("stop", str(job["id"]), check=False)
    server.wait_state(job["id"], "cancelled")


def test_exec_runs_inside():
    job = server.submit(team="red", command=["sh", "-c", "echo up; sleep 1000"], cpu="100m")
    wait_for("the task", lambda: "up" in log(job["id"]))
    # The log is there before the server has heard that the task runs.
    wait_for("its start", lambda: server.workload(job["id"])["started_at"])
    done = server.allot("exec", str(job["id"]), "--", "sh", "-c",
                        "echo $ALLOT_WORKLOAD_ID; pwd; exit 5", check=False)
    equal(done.returncode, 5, f"exit code ({done.stderr})")
    equal(done.stdout, f"{job['id']}\n/home/task\n", "output")
    server.allot("stop", str(job["id"]), check=False)


def test_a_task_runs_in_an_image():
    probe = os.path.join(BUILD, "tests/unit/engine/image_probe")
    if not shutil.which("umoci") or not shutil.which("skopeo") or not os.path.exists(probe):
        raise tap.Skip("umoci, skopeo or the image's program is missing")
    with tempfile.TemporaryDirectory(dir=server.folder) as folder:
        os.chmod(folder, 0o755)
        image = f"{folder}/layout:v1"
        for step in (["init", "--layout", f"{folder}/layout"], ["new", "--image", image],
                     ["insert", "--image", image, probe, "/bin/probe"],
                     ["config", "--image", image, "--config.env", "FROM_IMAGE=yes"]):
            subprocess.run(["umoci", *step], check=True, capture_output=True)
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        job = server.submit(team="red", command=["probe"], image=f"oci:{image}", cpu="100m")
        server.wait_state(job["id"], "succeeded")
        expect("image yes" in log(job["id"]), log(job["id"]))


def test_the_server_is_well():
    equal(server.stop(), 0, "exit status")


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
