#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=480
"""The story of one shared node, with real processes: what `make demo` plays and a test of it.

Eight simulated H100. Notebooks share one device; team research bursts beyond its guarantee; team
product takes back what it is entitled to; batch work fills what is idle and goes first; the
server is killed and comes back; the reclaimed training goes on from its checkpoint; an idle
notebook lends its GPUs.

usage: story.py            as a test: TAP, one line a chapter
       story.py --demo     as a demonstration: says what it does and what came of it
"""
import json
import os
import re
import shutil
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import (ROOT, Failure, Server, check_devices, equal,  # noqa: E402
                         expect, free_port, supervisors, wait_for)

DEMO = "--demo" in sys.argv
PYTHON = "/usr/bin/python3"
EPOCHS = 60


SUMMARY = """
What happened, with real processes, in {seconds:.0f} s:
  - a Kubernetes quota was taken as it is; four notebooks shared one GPU, and none could take the
    memory of another
  - research trained on 6 GPUs with a guarantee of 4, because they were idle
  - batch work filled the rest and gave way first
  - product took back its 4 GPUs; the training wrote its checkpoint after epoch {epoch} and waited
  - its service answered throughout, also while the server was dead
  - the server was killed with -9: every task ran on, none twice, no second was lost
  - the training went on after epoch {epoch} and finished
  - an idle notebook lent its GPUs to another job and went on where it was"""


class Story:
    """What the chapters hand on to each other."""
    server = None
    notebooks, batch = [], []
    epoch_at_eviction = None


story = Story()


def tell(text=""):
    if DEMO:
        print(text, flush=True)


def chapter(number, title):
    tell(f"\n\033[1m{number}. {title}\033[0m" if sys.stdout.isatty() else f"\n{number}. {title}")


def show(*command):
    """Runs a command line for the reader to see."""
    done = story.server.allot(*command)
    if DEMO:
        print("   $ allot " + " ".join(command))
        for line in done.stdout.rstrip().splitlines():
            print("     " + line)
        sys.stdout.flush()
    return done.stdout


def example(name):
    return os.path.join(story.examples, "digits", name)


def submit(name, team, *options, command, **more):
    args = ["submit", "--name", name, "--team", team, *options]
    for key in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        if key in os.environ:
            args += ["--env", f"{key}={os.environ[key]}"]
    # Six ranks on a small machine: one thread each.
    args += ["--env", "OPENBLAS_NUM_THREADS=1", "--env", "OMP_NUM_THREADS=1"]
    story.server.allot(*args, "--", *command)
    return name


def log_of(name, *options):
    return story.server.allot("logs", name, *options, check=False).stdout


def tasks(name):
    return story.server.workload(name)["tasks_detail"]


def devices_of(name):
    return sorted({d for t in tasks(name) for d in t["devices"]})


def events(name):
    return story.server.get(f"/v1/workloads/{ident(name)}/events")["events"]


def ident(name):
    return story.server.workload(name)["id"]


def checkpoint_folder():
    return os.path.join(story.server.folder, "digits-model")


# ---- the chapters ----------------------------------------------------------------------------

def test_0_quotas_are_applied():
    story.server = Server(simulate="8xH100")
    story.server.start()
    # Tasks see the host's files read-only, but not the temporary folder of the host.
    story.examples = os.path.join(story.server.folder, "examples")
    shutil.copytree(os.path.join(ROOT, "examples"), story.examples)
    os.makedirs(checkpoint_folder())
    os.chmod(checkpoint_folder(), 0o777)
    os.chmod(story.server.folder, 0o755)
    chapter(0, "A company's quota, as it is, beside two teams")
    quota = os.path.join(story.examples, "quota.yaml")
    show("apply", "-f", quota, "-f", os.path.join(story.examples, "teams.yaml"))
    team = story.server.get("/v1/teams/ml-research")
    equal(team["guarantee"]["gpu"], 8, "guarantee of ml-research")
    equal(team["limit"]["gpu"], 16, "limit of ml-research")
    equal(team["limit"]["volumes"], 50, "volumes of ml-research")
    tell("   The node has 8 GPUs, so the numbers are scaled to it: 1 assured, 2 at most.")
    scaled = re.sub(r'"8"', '"1"', open(quota).read()).replace('"16"', '"2"')
    scaled_path = os.path.join(story.server.folder, "quota-scaled.yaml")
    with open(scaled_path, "w") as f:
        f.write(scaled)
    show("apply", "-f", scaled_path)
    show("quota")


def test_1_four_notebooks_share_one_device():
    chapter(1, "Four notebooks of a quarter GPU each land on one device")
    for i in range(1, 5):
        story.notebooks.append(
            submit(f"notebook-{i}", "ml-research", "--kind", "notebook", "--gpu", "0.25",
                   "--max-run-time", "5m", command=[PYTHON, example("notebook.py")]))
    for name in story.notebooks:
        story.server.wait_state(name, "running")
        wait_for(f"{name} to be ready", lambda n=name: "ready" in log_of(n))
    used = {d for name in story.notebooks for d in devices_of(name)}
    equal(len(used), 1, "devices under four quarters")
    show("ps")
    tell("   Each takes all the GPU memory that it can have, and asks for one byte more:")
    for name in story.notebooks:
        expect("took 19.7 GiB of 20 GiB; one byte more: out of memory" in log_of(name),
               log_of(name))
    show("logs", story.notebooks[-1])


def test_2_research_bursts():
    chapter(2, "Team research trains with 6 GPUs, 2 more than it is assured of")
    submit(
        "digits", "research", "--tasks", "6", "--gpus", "1", "--grace", "20s",
        "--max-run-time", "10m", "--checkpoint-dir", checkpoint_folder(),
        command=[PYTHON, example("train.py"), "--epochs", str(EPOCHS),
                 "--seconds-per-epoch", "0.4"])
    story.server.wait_state("digits", "running")
    wait_for("the first checkpoint",
             lambda: os.path.exists(os.path.join(checkpoint_folder(), "checkpoint.pickle")))
    equal(len(devices_of("digits")), 6, "devices of the gang")
    show("logs", "digits", "--task", "0")


def evictions_of(name):
    return [e for e in events(name) if e["type"] == "workload.evicted"]


def test_3_batch_fills_what_is_idle_and_goes_first():
    chapter(3, "Batch work fills the last idle GPU, and gives way first")
    for name in ("search-1", "search-2"):
        story.batch.append(submit(name, "research", "--class", "batch", "--gpus", "1",
                                  "--grace", "2s", command=[PYTHON, example("search.py")]))
    story.server.wait_state("search-1", "running")
    equal(story.server.state("search-2"), "pending", "the second batch job")
    show("quota")
    tell("   A colleague of team product needs one GPU for a moment:")
    submit("evaluate", "product", "--gpus", "1", "--max-run-time", "1m",
           command=[PYTHON, example("search.py"), "--trials", "2"])
    story.server.wait_state("evaluate", "running", "succeeded")
    equal(len(evictions_of("search-1")), 1, "evictions of the batch job")
    equal(evictions_of("digits"), [], "evictions of the training")
    show("ps")
    story.server.wait_state("evaluate", "succeeded")
    wait_for("batch work to go on",
             lambda: "running" in [story.server.state(n) for n in story.batch])


def why(name):
    return story.server.get(f"/v1/workloads/{ident(name)}/explain")


def test_4_product_takes_back_its_share():
    chapter(4, "Team product needs its 4 GPUs: the burst of research is reclaimed, with grace")
    story.port = free_port()
    submit("digits-api", "product", "--kind", "service", "--class", "production", "--gpus", "2",
           "--checkpoint-dir", checkpoint_folder(), "--env", f"PORT={story.port}",
           command=[PYTHON, example("serve.py")])
    submit("finetune", "product", "--gpus", "2", "--max-run-time", "2m",
           command=[PYTHON, example("train.py"), "--epochs", "40", "--seconds-per-epoch", "0.5"])
    story.server.wait_state("digits-api", "running")
    story.server.wait_state("finetune", "running")
    wait_for("digits to be waiting again", lambda: story.server.state("digits") == "pending")
    text = log_of("digits", "--task", "0", "--attempt", "0")
    found = re.search(r"checkpoint written after epoch (\d+)", text)
    expect(found, f"the victim wrote no checkpoint:\n{text}")
    story.epoch_at_eviction = int(found.group(1))
    equal(len(evictions_of("digits")), 1, "evictions of the burst")
    expect(story.server.state("digits-api") == "running", "production was disturbed")
    explanation = why("digits")
    expect(explanation["reason"], "no reason why digits waits")
    expect(explanation["start_at"], f"no estimated start: {explanation}")
    expect("product" in (explanation["last_eviction"] or ""), f"not named: {explanation}")
    show("why", "digits")
    show("ps")


def predict():
    from_digits = [0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0, 0, 3, 15, 2, 0, 11, 8, 0,
                   0, 4, 12, 0, 0, 8, 8, 0, 0, 5, 8, 0, 0, 9, 8, 0, 0, 4, 11, 0, 1, 12, 7, 0,
                   0, 2, 14, 5, 10, 12, 0, 0, 0, 0, 6, 13, 10, 0, 0, 0]
    body = json.dumps({"pixels": from_digits}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{story.port}/predict", body)
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            return json.load(reply)
    except (urllib.error.URLError, ConnectionError):
        return None


def test_5_the_service_answers():
    chapter(5, "The service answers with the classifier's predictions")
    answer = wait_for("a prediction", predict)
    equal(answer["digit"], 0, "the handwritten zero is read as")
    tell(f"   POST /predict (a handwritten zero) -> {answer}")


def running_tasks():
    """Process id -> task folder of every supervisor that is alive."""
    found = {}
    for pid in supervisors(story.server.folder):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                found[pid] = f.read().split(b"\0")[1].decode()
        except OSError:
            continue
    return found


def test_6_the_server_is_killed_and_comes_back():
    chapter(6, "The server is killed with -9 and started again")
    before = {n: [(t["index"], t["attempt"], t["started_at"]) for t in tasks(n)]
              for n in ("digits-api", *story.notebooks)}
    supervisors_before = running_tasks()
    expect(len(supervisors_before) >= 5, "too few tasks run to make this worth while")
    story.server.kill()
    time.sleep(1)
    equal(running_tasks(), supervisors_before, "tasks while the server was away")
    expect(predict() is not None, "the service stopped answering")
    story.server.start()
    wait_for("the server to have found its tasks",
             lambda: story.server.get("/v1/status")["reconciled"])
    for name, rows in before.items():
        equal([(t["index"], t["attempt"], t["started_at"]) for t in tasks(name)], rows,
              f"tasks of {name} after the restart")
    tell(f"   {len(supervisors_before)} tasks ran on, none ran twice; the service kept answering")
    show("ps")


def test_7_the_training_resumes_and_finishes():
    chapter(7, "Notebooks are closed, product's training ends: research goes on where it was")
    story.server.wait_state("finetune", "succeeded", seconds=90)
    for name in story.notebooks:
        story.server.allot("stop", name)
    story.server.wait_state("digits", "succeeded", seconds=90)
    text = log_of("digits", "--task", "0")
    resumed = re.search(r"resumes from its checkpoint after epoch (\d+)", text)
    expect(resumed, f"it did not resume:\n{text}")
    equal(int(resumed.group(1)), story.epoch_at_eviction, "resumed after epoch")
    expect(f"checkpoint written after epoch {EPOCHS}" in text, f"not finished:\n{text}")
    show("logs", "digits", "--task", "0")


def test_8_an_idle_notebook_lends_its_gpus():
    chapter(8, "An idle notebook lends its GPUs, and has them again with its next call")
    for name in ("digits-api", *story.batch):
        story.server.allot("stop", name, check=False)
    submit("lab", "research", "--kind", "notebook", "--gpus", "8",
           command=[PYTHON, example("notebook.py")])
    story.server.wait_state("lab", "running")
    wait_for("it to use its GPUs", lambda: "ready" in log_of("lab"))
    show("suspend", "lab")
    submit("borrower", "research", "--gpus", "8", "--max-run-time", "1m", command=["sleep", "3"])
    story.server.wait_state("borrower", "running")
    show("ps")
    story.server.allot("exec", "lab", "--", "sh", "-c", "touch $HOME/go-on")
    story.server.wait_state("lab", "pending")
    expect("goes on" not in log_of("lab"), log_of("lab"))
    tell("   Its program has called a GPU, and waits for the others to end:")
    show("why", "lab")
    wait_for("its call to come back", lambda: "goes on" in log_of("lab"))
    equal(story.server.state("borrower"), "succeeded")
    equal(story.server.workload("lab")["restarts"], 0, "restarts of the notebook")
    show("logs", "lab")
    story.server.allot("stop", "lab", "--now")


def test_9_metering_has_no_gap_and_no_overlap():
    chapter(9, "What it cost: GPU-seconds per team, allocated, busy and idle")
    rows = []
    for name in ("digits", "digits-api", "finetune", "search-1", "lab", "borrower",
                 *story.notebooks):
        rows += story.server.allocations(ident(name))
    expect(len(rows) > 10, "too little was metered")
    check_devices(rows)
    # The service ran through the crash: one allocation, from its start until it was stopped.
    rows = story.server.allocations(ident("digits-api"))
    equal(len(rows), 1, "the service's allocations")
    usage = {u["team"]: u for u in story.server.get("/v1/usage")["teams"]}
    for team in ("research", "product", "ml-research"):
        u = usage[team]
        equal(u["allocated_gpu_ms"] >= u["busy_gpu_ms"] >= 0, True, f"{team}: busy is part")
        parts = u["idle_gpu_ms"] + u["busy_gpu_ms"] + u["unknown_gpu_ms"]
        equal(parts, u["allocated_gpu_ms"], f"{team}: busy, idle and not known")
    expect(usage["research"]["busy_gpu_ms"] > 0, "training used no time")
    show("usage")


def test_10_everything_stops():
    for name in ("digits-api", *story.batch):
        story.server.allot("stop", name, check=False)
    for name in ("digits-api", *story.batch):
        story.server.wait_state(name, "cancelled", "succeeded", "failed")
    wait_for("all tasks to be gone", lambda: not running_tasks())
    equal(story.server.stop(), 0, "exit status of the server")


def main():
    try:
        if not DEMO:
            tap.run(globals())
        begun = time.monotonic()
        for name, function in list(globals().items()):
            if name.startswith("test_"):
                function()
        tell(SUMMARY.format(epoch=story.epoch_at_eviction, seconds=time.monotonic() - begun))
        return 0
    except Failure as e:
        print(f"\nthe story went wrong: {e}", file=sys.stderr)
        if story.server:
            print(story.server.log()[-3000:], file=sys.stderr)
        return 1
    finally:
        if story.server:
            story.server.close()


if __name__ == "__main__":
    sys.exit(main())
