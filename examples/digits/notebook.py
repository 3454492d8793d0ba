#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A small interactive session: evaluates Python expressions from standard input, with the digits
loaded. Without input it stays open, as a notebook does."""
import code
import sys
import time

from sklearn.datasets import load_digits

digits = load_digits()
print(f"ready: digits.data has shape {digits.data.shape}", flush=True)
if sys.stdin.isatty() or sys.stdin.readable():
    console = code.InteractiveConsole({"digits": digits})
    for line in sys.stdin:
        console.push(line.rstrip("\n"))
while True:
    time.sleep(3600)
