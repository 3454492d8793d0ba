#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=120
"""`allot gpu verify` tells the truth about a node: one that enforces, one that does not, and one
that has no driver."""
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402
from e2e.harness import BUILD, Server, equal, expect, wait_for  # noqa: E402

GIB = 1 << 30
CONTEXT = 300 << 20
WAYS = ["one byte more", "linear", "looked up", "pitched", "managed", "async", "own pool",
        "virtual memory", "array", "second process"]


def installed(folder, *left_out):
    """A server whose program was installed without some of its parts."""
    parts = {"allot", "allot-supervise", "allot-gpu-verify", "liballot-share.so", "simulated"}
    for part in parts - set(left_out):
        copy = shutil.copytree if part == "simulated" else shutil.copy
        copy(os.path.join(BUILD, part), os.path.join(folder, part))
    return Server(simulate="1xH100", program=os.path.join(folder, "allot"))


def verify(server, *args):
    """Exit code, and what it says."""
    done = server.allot("gpu", "verify", "-o", "json", *args, check=False)
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        raise AssertionError(f"exit {done.returncode}: {done.stdout}{done.stderr}") from None


def test_where_parts_are_enforced_everything_holds():
    with Server(simulate="2xH100") as server:
        code, said = verify(server)
        device, = said["devices"]
        equal((code, said["verdict"], device["beyond"], device["lost"]), (0, "held", 0, False))
        equal((device["part"], device["total"]), (20 * GIB, 20 * GIB))
        equal(device["filled"], 20 * GIB - CONTEXT, "to the last byte")
        equal([(w["way"], w["result"]) for w in device["ways"]], [(w, "refused") for w in WAYS])
        # Alone it may have more of it, which is no fault.
        equal(device["computing_part"], 0.25)
        expect(device["computing_got"] > 0, f"{device}")
        equal((device["computing_contended"], device["computing_unseen"]), (0, False))

        text = server.allot("gpu", "verify", "--gpu-memory", "1GiB")
        expect(": alone, what nobody else wants is usable\n" in text.stdout, text.stdout)
        expect(text.stdout.endswith("held: no way gave more memory than the part\n"), text.stdout)

        # A part of each of two; and whole ones, which have nothing to hold.
        code, said = verify(server, "--gpu", "0.5", "--gpu-count", "2")
        equal((code, [d["verdict"] for d in said["devices"]]), (0, ["held"] * 2), f"{said}")
        code, said = verify(server, "--gpus", "2")
        equal((code, said["verdict"], len(said["devices"])), (0, "whole", 2), f"{said}")
        expect("computing_got" not in said["devices"][0], f"{said}")

        # There is no room in it for a context.
        code, said = verify(server, "--gpu-memory", "200MiB")
        equal((code, said["verdict"]), (2, "untested"), f"{said}")

        node = server.get("/v1/nodes")["nodes"][0]["name"]
        code, said = verify(server, "--node", node)
        equal(code, 0, f"{said}")
        done = server.allot("gpu", "verify", "--node", "elsewhere", check=False)
        equal(done.returncode, 125, done.stdout)
        equal(server.state(1), "succeeded")
        equal(server.workload(1)["name"], "gpu-verify")


def test_a_neighbour_is_not_mistaken_for_a_limit():
    # Whoever has its part filled leaves the others theirs, whatever they try.
    with Server(simulate="1xH100") as server:
        full = server.submit(team="default", gpu=0.75, command=["python3", "-uc", """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0)
print(cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(59 << 30)))
module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuModuleLoadData(ctypes.byref(module), b"kernel work 1000000 108\\n")
cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"work")
print("busy")
while True:
    cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)
    cuda.cuCtxSynchronize()"""])["id"]
        wait_for("it to be at work", lambda: "busy" in server.allot("logs", str(full)).stdout)
        code, said = verify(server)
        equal((code, said["verdict"]), (0, "held"), f"{said}")
        # A quarter, as the other one wants the rest; alone it is all.
        expect(0 < said["devices"][0]["computing_got"] < 0.5, f"{said}")
        expect(said["devices"][0]["computing_contended"] > 0, f"{said}")


def test_what_goes_past_the_shim_is_noticed():
    # The driver itself is found first, and nothing is preloaded.
    with Server(simulate="1xH100") as server:
        past = server.submit(team="default", gpu=0.25, command=["sh", "-c", """
ln -s /run/allot/gpu/libcuda.so $HOME/libcuda.so.1
LD_PRELOAD= LD_LIBRARY_PATH=$HOME exec /run/allot/gpu/verify $0""", "--json"])["id"]
        server.wait_state(past, "failed")
        device, = json.loads(server.allot("logs", str(past)).stdout)["devices"]
        equal((device["verdict"], device["computing_unseen"]), ("not enforced", True), f"{device}")
        expect(device["beyond"] > 0, f"{device}")


def test_a_node_without_the_shim_is_caught():
    with tempfile.TemporaryDirectory(dir=os.environ.get("ALLOT_TEST_DIR", "/srv")) as folder:
        with installed(folder, "liballot-share.so") as server:
            shim = server.get("/v1/nodes")["nodes"][0]["sharing_backends"][0]
            equal((shim["name"], shim["state"]), ("shim", "absent"))
            expect("liballot-share.so" in shim["reason"], shim["reason"])
            done = server.allot("gpu", "verify", "-o", "json", check=False)
            expect(f"enforce no parts of GPUs: {shim['reason']}" in done.stderr, done.stderr)
            said = json.loads(done.stdout)
            device, = said["devices"]
            equal((done.returncode, said["verdict"]), (1, "not enforced"))
            equal((device["part"], device["filled"]), (20 * GIB, 20 * GIB))
            expect(0 < device["beyond"] <= 64 << 20, f"{device}")
            equal([(w["way"], w["result"]) for w in device["ways"]],
                  [(w, "given") for w in WAYS[:-1]] + [(WAYS[-1], "not tried")])
            expect("computing_got" in device and "computing_contended" not in device, f"{device}")
            text = server.allot("gpu", "verify", check=False)
            equal(text.stdout.splitlines()[-1],
                  f"not enforced: {device['beyond']} bytes beyond the part")
            code, said = verify(server, "--gpus", "1")
            equal((code, said["verdict"]), (0, "whole"), "a whole device needs no shim")


def test_without_a_driver_it_says_so():
    with tempfile.TemporaryDirectory(dir=os.environ.get("ALLOT_TEST_DIR", "/srv")) as folder:
        with installed(folder, "simulated") as server:
            code, said = verify(server)
            equal((code, said["verdict"], said["devices"]), (2, "untested", []))
            expect("libcuda.so.1" in said["reason"], said["reason"])


if __name__ == "__main__":
    tap.run(globals())
