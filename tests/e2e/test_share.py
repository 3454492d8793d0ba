#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=400
"""Parts of GPUs are parts: what programs of tasks see of the memory of simulated devices."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.driver import CONTEXT, DRIVER, GIB, used  # noqa: E402
from e2e.harness import BUILD, SANITIZED, Server, equal, expect, wait_for  # noqa: E402

server = Server(simulate="2xH100")


def start(program, **request):
    answer = server.call("POST", "/v1/workloads",
                         {"team": "default", "command": ["python3", "-uc", DRIVER + program],
                          **request})
    equal(answer.status, 201, f"{answer.body}")
    return answer.json["id"]


def log_of(ident):
    return server.allot("logs", str(ident)).stdout


def run(program, **request):
    """The lines that a task prints."""
    ident = start(program, **request)
    state = server.wait_state(ident, "succeeded", "failed")["state"]
    equal(state, "succeeded", log_of(ident))
    return log_of(ident).splitlines()


def test_the_node_says_what_enforces():
    server.start()
    node = server.get("/v1/nodes")["nodes"][0]
    equal(node["sharing"], "shim")
    backends = {b["name"]: b for b in node["sharing_backends"]}
    equal(sorted(backends), ["dmem", "mig", "mps", "shim"])
    equal(backends["shim"], {"name": "shim", "state": "used", "reason": None})
    expect("simulated" in backends["dmem"]["reason"], f"{backends}")
    expect("Parts of GPUs" in server.allot("node", "show", node["name"]).stdout, "node show")


def test_four_quarters_cannot_take_each_others_memory():
    taken = [start("context(); print(take(info()[0])); print(take(1)); print(*info());"
                   "time.sleep(600)", gpu=0.25, name=f"quarter-{i}") for i in range(4)]
    for ident in taken:
        wait_for("a quarter to be full", lambda: len(log_of(ident).splitlines()) == 3)
        equal(log_of(ident).split(), ["0", "2", "0", str(20 * GIB)], "all of it, and no byte more")
    # They share a device: together they have all of it, to the byte.
    equal(sorted(used(server)), [0, 80 * GIB])
    for ident in taken:
        server.allot("stop", str(ident), "--grace", "100ms")
    for ident in taken:
        server.wait_state(ident, "cancelled")
    equal(used(server), [0, 0], "what they held is free again")


def test_a_part_by_memory_is_those_bytes():
    equal(run("context(); print(*info())", gpu_memory="3GiB"),
          [f"{3 * GIB - CONTEXT} {3 * GIB}"])


def test_a_part_of_each_of_two_devices():
    lines = run("""
print(number("cuDeviceGetCount", of=ctypes.c_int))
for device in 0, 1:
    context(device)
    print(*info())
""", gpu=0.5, gpu_count=2)
    equal(lines, ["2"] + [f"{40 * GIB - CONTEXT} {40 * GIB}"] * 2)


def test_whole_devices_have_no_limit():
    equal(run('context(); print(number("cuDeviceGetCount", of=ctypes.c_int), *info())', gpus=2),
          [f"2 {80 * GIB - CONTEXT} {80 * GIB}"])


# A program of its own: the driver is not usable in the child of a fork.
CHILD = """
import subprocess
def child(size):
    return subprocess.Popen(["python3", "-uc", os.environ["DRIVER"] +
                             f"context(); print(take({size})); time.sleep(600)"],
                            stdout=subprocess.PIPE, text=True)
"""


def test_processes_of_a_task_share_its_part():
    lines = run(CHILD + """
first = child(12 << 30)
print(first.stdout.readline().strip())
second = child(12 << 30)
print(second.stdout.readline().strip())
first.kill()
first.wait()
end = time.monotonic() + 30
while True:
    third = child(12 << 30)
    code = third.stdout.readline().strip()
    if code == "0" or time.monotonic() > end:
        print(code)
        break
    third.kill()
""", gpu=0.25, env={"DRIVER": DRIVER})
    equal(lines, ["0", "2", "0"], "first, one too many, after the first was killed")


def test_the_limit_outlives_the_server():
    ident = start("context(); print(take(info()[0])); time.sleep(600)", gpu=0.25)
    wait_for("it to be full", lambda: log_of(ident).split() == ["0"])
    server.kill()
    server.start()
    text = server.allot("exec", str(ident), "--", "python3", "-c",
                        DRIVER + "print(context())").stdout
    equal(text.split(), ["2"], "not even a context is left for another process of the task")
    server.allot("stop", str(ident), "--grace", "100ms")
    server.wait_state(ident, "cancelled")


# What a monitor reads, as pynvml does.
MONITOR = """
nvml = ctypes.CDLL("libnvidia-ml.so.1")
class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu", ctypes.c_uint),
                ("compute", ctypes.c_uint)]
def handle(index):
    device = ctypes.c_void_p()
    return device if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) == 0 else None
def devices():
    count = ctypes.c_uint()
    nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    return count.value
def memory(index=0):
    memory = (ctypes.c_ulonglong * 3)()  # total, free, used
    assert nvml.nvmlDeviceGetMemoryInfo(handle(index), memory) == 0
    return list(memory)
def processes(index=0):
    list, count = (Process * 64)(), ctypes.c_uint(64)
    assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle(index), ctypes.byref(count),
                                                        list) == 0
    return [(p.pid, p.used) for p in list[:count.value]]
def uuids():
    text = ctypes.create_string_buffer(96)
    return [nvml.nvmlDeviceGetUUID(handle(i), text, 96) or text.value.decode()
            for i in range(devices())]
assert nvml.nvmlInit_v2() == 0
"""


def test_monitors_show_the_part():
    # A neighbour on the same device, whose memory and processes are its own.
    neighbour = start("context(); print(take(5 << 30)); time.sleep(600)", gpu=0.5)
    wait_for("the neighbour to have its memory", lambda: log_of(neighbour).split() == ["0"])
    lines = run(MONITOR + """
print(*memory())
context()
take(3 << 30)
print(*memory())
print(processes() == [(os.getpid(), (3 << 30) + int(os.environ["CONTEXT"]))], processes())
print(devices(), handle(1), uuids() == [os.environ["CUDA_VISIBLE_DEVICES"]])
""", gpu=0.25, env={"CONTEXT": str(CONTEXT)})
    equal(max(used(server)), (5 << 30) + CONTEXT, "the neighbour has it still")
    server.allot("stop", str(neighbour), "--grace", "100ms")
    server.wait_state(neighbour, "cancelled")
    equal(lines[0], f"{20 * GIB} {20 * GIB} 0", "total, free, used")
    equal(lines[1], f"{20 * GIB} {17 * GIB - CONTEXT} {3 * GIB + CONTEXT}")
    expect(lines[2].startswith("True"), f"its own process alone: {lines[2]}")
    equal(lines[3], "1 None True", "of two devices it sees its own")


def test_monitors_show_whole_devices_to_their_tasks():
    equal(run(MONITOR + "print(devices()); context(); print(*memory())", gpus=1),
          ["1", f"{80 * GIB} {80 * GIB - CONTEXT} {CONTEXT}"])
    equal(run(MONITOR + "print(devices(), memory(1)[0])", gpus=2), [f"2 {80 * GIB}"])


def test_a_monitor_neither_hinders_a_suspend_nor_wakes_the_task():
    watcher = MONITOR.replace("nvml = ", "import ctypes, os, time\nnvml = ", 1) + """
looks = 0
while memory()[0] == 20 << 30:
    looks += 1
    print("look", looks)
    time.sleep(0.02)
"""
    ident = start("import subprocess; context(); take(1 << 30);"
                  "subprocess.run(['python3', '-uc', os.environ['WATCHER']])",
                  gpu=0.25, kind="notebook", env={"WATCHER": watcher})
    wait_for("the monitor to look", lambda: "look 1\n" in log_of(ident))
    server.allot("suspend", str(ident))
    equal(max(used(server)), 0, "what it held is on the host")
    seen = len(log_of(ident).splitlines())
    wait_for("it to look on", lambda: len(log_of(ident).splitlines()) > seen + 20)
    equal(server.state(ident), "suspended")
    server.allot("resume", str(ident))
    server.wait_state(ident, "running")
    server.allot("stop", str(ident), "--now")
    server.wait_state(ident, "cancelled")


def test_nothing_in_front_of_the_driver_can_be_replaced():
    lines = run("""
for path in ("lib/libcuda.so.1", "lib/libnvidia-ml.so.1", "libcuda.so", "libnvidia-ml.so", "agent",
             "lib", "open", "verify"):
    try:
        os.rename("/run/allot/gpu/" + path, "/run/allot/gpu/other")
        print(path)
    except OSError:
        pass
    try:
        open("/run/allot/gpu/" + path, "w")
        print(path)
    except OSError:
        pass
""", gpu=0.25)
    equal(lines, [])


def test_what_is_taken_past_the_shim_is_charged_and_told():
    ident = start("""
context()
before = info()[0]
driver = ctypes.CDLL("/run/allot/gpu/libcuda.so")
print(driver.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(5 << 30)))
end = time.monotonic() + 60
while info()[0] == before and time.monotonic() < end:
    time.sleep(0.1)
print((before - info()[0]) >> 30, take(info()[0] + 1))
time.sleep(600)
""", gpu=0.25)
    wait_for("it to be charged", lambda: len(log_of(ident).splitlines()) == 2)
    equal(log_of(ident).split(), ["0", "5", "2"])
    told = wait_for("it to be told", lambda: [
        e for e in server.get(f"/v1/workloads/{ident}/events?limit=100")["events"]
        if e["type"] == "task.beyond"])
    equal(len(told), 1)
    expect("holds 5GiB of GPU memory that its programs took past the shim" in told[0]["message"],
           f"{told}")
    server.allot("stop", str(ident), "--now")
    server.wait_state(ident, "cancelled")


def test_who_takes_and_gives_back_all_the_time_is_not_charged_twice():
    equal(run("""
context()
half = info()[0] // 2
end = time.monotonic() + 12
refused = 0
block = ctypes.c_uint64()
while time.monotonic() < end:
    refused += call("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(2 * half)) != 0
    time.sleep(0.05)
    if block.value:
        call("cuMemFree_v2", block)
        block.value = 0
print("refused", refused)
""", gpu=0.25), ["refused 0"])


# Keeps the device busy with kernels of five milliseconds, and says how many there were in each
# of the given spans of a common clock.
WORK = """
context()
module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
call("cuModuleLoadData", ctypes.byref(module), b"kernel work 5000000 108\\n")
call("cuModuleGetFunction", ctypes.byref(kernel), module, b"work")
print("ready")
while not os.path.exists(os.environ["HOME"] + "/go"):
    time.sleep(0.01)
count, end = 0, time.monotonic() + SECONDS
while time.monotonic() < end:
    call("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)
    call("cuCtxSynchronize")
    count += 1
print("count", count)
"""


def counted(parts, seconds):
    """Kernels of each task with such a part of a device, all at work at the same time."""
    ids = [start(WORK.replace("SECONDS", str(seconds)), gpu=part) for part in parts]
    for ident in ids:
        wait_for("it to be ready", lambda: "ready" in log_of(ident))
    equal(len({d for i in ids for t in server.workload(i)["tasks_detail"] for d in t["devices"]}),
          1, "devices")
    for ident in ids:
        server.allot("exec", str(ident), "--", "sh", "-c", "touch $HOME/go")
    for ident in ids:
        server.wait_state(ident, "succeeded")
    return [int(log_of(ident).split()[-1]) for ident in ids]


def test_computing_is_shared_by_parts_where_it_is_contended():
    quarter, rest = counted([0.25, 0.75], 8)
    expect(0.15 < quarter / (quarter + rest) < 0.35, f"{quarter} and {rest} kernels")
    expect(quarter + rest > 600, f"{quarter} and {rest} of 1600: the device was left idle")


def test_what_nobody_else_wants_is_usable():
    alone, = counted([0.25], 4)
    expect(alone > 400, f"{alone} of 800 kernels: it was held to its part")


def test_own_library_folders_come_after_it():
    equal(run('print(os.environ["LD_LIBRARY_PATH"])', gpu=0.25,
              env={"LD_LIBRARY_PATH": "/opt/mine"}), ["/run/allot/gpu/lib:/opt/mine"])


def test_a_task_without_devices_sees_no_driver():
    ident = start("", cpu=1)
    equal(server.wait_state(ident, "succeeded", "failed")["state"], "failed")
    expect("libcuda.so.1" in log_of(ident), log_of(ident))


def test_who_loses_the_folder_still_meets_the_part():
    # Neither by LD_LIBRARY_PATH nor by a search path of its own: it is loaded already.
    program = start("""
import subprocess
clean = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
deep = os.environ["PROGRAM"].replace('so.1"', 'so.1", mode=os.RTLD_NOW | os.RTLD_DEEPBIND')
assert deep != os.environ["PROGRAM"]
home = os.environ["HOME"]
os.symlink("/run/allot/gpu/libcuda.so", home + "/libcuda.so.1")  # the driver by itself
for folder in {}, {"LD_LIBRARY_PATH": home}:
    for program in os.environ["PROGRAM"], deep:
        subprocess.run(["python3", "-uc", program], env=clean | folder)
print("preloads", os.environ["LD_PRELOAD"])
""", gpu=0.25, env={"PROGRAM": DRIVER + "context(); print(info()[1], take(20 << 30))",
                    "LD_PRELOAD": "/nowhere/own.so"})
    server.wait_state(program, "succeeded")
    lines = [line for line in log_of(program).splitlines() if not line.startswith("ERROR: ld.so")]
    equal(lines, [f"{20 * GIB} 2"] * 4 +
          ["preloads /run/allot/gpu/lib/libcuda.so.1:/nowhere/own.so"])
    # Who has no part meets nothing.
    equal(run('print(os.environ.get("LD_PRELOAD"))', gpus=1), ["None"])


def image_with(layout, *files):
    """A reference to an image of FILES: what is copied, and where it is in the image."""
    image = f"{layout}:v1"
    for step in (["init", "--layout", layout], ["new", "--image", image],
                 *(["insert", "--image", image, what, where] for what, where in files)):
        subprocess.run(["umoci", *step], check=True, capture_output=True)
    subprocess.run(["chmod", "-R", "a+rX", layout], check=True)
    return f"oci:{image}"


def test_the_driver_that_an_image_brings_is_covered():
    if SANITIZED:
        raise tap.Skip("a supervisor with a sanitizer is not static, as images need it")
    probe = os.path.join(BUILD, "tests/unit/engine/image_probe")
    if not shutil.which("umoci") or not shutil.which("skopeo") or not os.path.exists(probe):
        raise tap.Skip("umoci, skopeo or the image's program is missing")
    places = ["/usr/local/cuda-12.4/compat/libcuda.so.550.54.15", "/usr/lib64/libcuda.so.1"]
    with tempfile.TemporaryDirectory(dir=os.path.dirname(server.folder)) as folder:
        os.chmod(folder, 0o755)
        text = os.path.join(folder, "text")
        with open(text, "w") as f:
            f.write("a driver")
        plain = image_with(f"{folder}/plain", (probe, "/bin/probe"),
                           *((text, place) for place in places))
        glibc = image_with(f"{folder}/glibc", (probe, "/bin/probe"),
                           (text, "/lib64/ld-linux-x86-64.so.2"))
        shim = os.path.getsize(os.path.join(BUILD, "liballot-share.so"))
        for asked, size in (({"gpu": 0.25}, shim), ({"gpus": 1}, len("a driver"))):
            job = server.submit(team="default", command=["/bin/probe", *places], image=plain,
                                **asked)
            wait_for("it to have ended", lambda: server.state(job["id"]) == "failed")
            lines = log_of(job["id"]).splitlines()
            equal(lines[-3:], [*(f"{place} {size}" for place in places), "preload -"],
                  f"{lines} {server.workload(job['id'])['message']}")
        job = server.submit(team="default", command=["/bin/probe"], image=glibc, gpu=0.25)
        server.wait_state(job["id"], "succeeded")
        equal(log_of(job["id"]).splitlines()[-1], "preload /run/allot/gpu/lib/libcuda.so.1")


def test_it_loads_where_the_c_library_is_older():
    # Images bring their own: those of RHEL 8, Debian 11 and Ubuntu 20.04 are older than ours.
    if SANITIZED:
        return  # a sanitizer's library needs more
    for library in ("liballot-share.so", "liballot-share-nvml.so"):
        listing = subprocess.run(["objdump", "-T", "-p", os.path.join(BUILD, library)],
                                 check=True, capture_output=True, text=True).stdout
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", listing)}
        expect(versions and max(versions) <= (2, 17), f"{library} needs glibc {max(versions)}")
        expect("libdl.so.2" in listing and "libpthread.so.0" in listing, listing)
        # Preloaded, it must not be in the way of programs of other C libraries, which lack what
        # is glibc's own: musl ends a program that it cannot link.
        needed = [line.split()[-1] for line in listing.splitlines()
                  if "*UND*" in line and line.split()[1] != "w"]
        expect("dlopen" in needed, listing)
        equal([n for n in needed if n.startswith("__")], ["__errno_location"])


def test_a_strict_server_takes_no_parts_that_nothing_enforces():
    # The simulated driver has at most 16 devices, so nothing stands in front of these.
    with Server(simulate="17xH100", options=["--strict-sharing"]) as strict:
        strict.team("lab", gpu=17)
        equal(strict.get("/v1/nodes")["nodes"][0]["sharing"], "refused")
        for part in ({"gpu": 0.5}, {"gpu_memory": "10GiB"}):
            answer = strict.call("POST", "/v1/workloads",
                                 {"team": "lab", "command": ["true"], **part})
            equal(answer.status, 400, f"{answer.body}")
            expect("this server refuses such work" in answer.json["detail"], f"{answer.body}")
        whole = strict.submit(team="lab", gpus=1, command=["true"])["id"]
        strict.wait_state(whole, "succeeded")
        text = strict.allot("node", "show", strict.get("/v1/nodes")["nodes"][0]["name"]).stdout
        expect("refused: nothing would enforce parts" in text, text)
        # What had been accepted before the server became strict is not begun either.
        strict.stop()
        strict.options = []
        strict.start()
        strict.allot("node", "drain", strict.get("/v1/nodes")["nodes"][0]["name"])
        part = strict.submit(team="lab", gpu=0.5, command=["true"])["id"]
        strict.stop()
        strict.options = ["--strict-sharing"]
        strict.start()
        strict.allot("node", "undrain", strict.get("/v1/nodes")["nodes"][0]["name"])
        wait_for("it to be refused", lambda: strict.state(part) == "failed")
        expect("nothing enforces parts" in strict.workload(part)["message"],
               strict.workload(part)["message"])


if __name__ == "__main__":
    try:
        tap.run(globals())
    finally:
        server.close()
