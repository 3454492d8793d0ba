#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A small interactive session: evaluates Python expressions from standard input, with the digits
loaded, and takes all the GPU memory that it may have. Without input it stays open, as a notebook
does, and calls its GPU again when there is a file 'go-on' in its home."""
import code
import os
import sys
import time

from gpu import GIB, Gpu
from sklearn.datasets import load_digits

digits = load_digits()
try:
    gpu = Gpu()
except OSError as e:
    gpu = None
    print(f"no GPU is used: {e}", flush=True)
if gpu:
    free, total = gpu.memory()
    gpu.take(free)
    more = "given" if gpu.take(1) else "out of memory"
    print(f"took {free / GIB:.1f} GiB of {total / GIB:.0f} GiB; one byte more: {more}", flush=True)
print(f"ready: digits.data has shape {digits.data.shape}", flush=True)
if sys.stdin.isatty() or sys.stdin.readable():
    console = code.InteractiveConsole({"digits": digits})
    for line in sys.stdin:
        console.push(line.rstrip("\n"))
while not os.path.exists(os.path.expanduser("~/go-on")):
    time.sleep(0.1)
if gpu:
    print(f"goes on with {gpu.memory()[1] / GIB:.0f} GiB", flush=True)
while True:
    time.sleep(3600)
