# SPDX-License-Identifier: Apache-2.0
"""What the programs of tasks in end-to-end tests do with the driver of simulated devices."""
import os
import subprocess

from e2e.harness import BUILD

GIB = 1 << 30
CONTEXT = 300 << 20

# The beginning of a Python program.
DRIVER = r"""
import ctypes, os, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *args):
    code = getattr(cuda, name)(*args)
    if code not in (0, 2):
        sys.exit(f"{name}: {code}")
    return code
def number(name, *args, of=ctypes.c_size_t):
    value = of()
    call(name, ctypes.byref(value), *args)
    return value.value
def take(size):
    # 0, or 2 for "out of memory"
    return call("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(size))
def context(device=0):
    return call("cuCtxCreate_v2", ctypes.byref(ctypes.c_void_p()), 0, device)
def info():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value
call("cuInit", 0)
"""


def used(server):
    """Bytes of each device that the driver of the node has given."""
    name = [n for n in os.listdir(server.data) if n.startswith("simulated-gpus.")]
    text = subprocess.run([os.path.join(BUILD, "simulated/cuda-double"), "show",
                           os.path.join(server.data, name[0])],
                          check=True, capture_output=True, text=True).stdout
    return [int(line.split(": ")[1].split()[0]) for line in text.splitlines()
            if line.startswith("device ")]
