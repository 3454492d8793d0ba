#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Serves the digit classifier's predictions over HTTP, from the newest checkpoint.

GET /healthz             200 once a checkpoint is loaded, else 503
POST /predict            {"pixels": [64 numbers 0..16]} -> {"digit": 3, "epoch": 40}
"""
import argparse
import json
import os
import pickle
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np


class Model:
    """The network of train.py as plain matrix products; reloads when the file changes."""

    def __init__(self, path):
        self.path, self.stamp, self.state = path, None, None

    def refresh(self):
        try:
            stamp = os.stat(self.path).st_mtime_ns
            if stamp != self.stamp:
                with open(self.path, "rb") as f:
                    self.state = pickle.load(f)
                self.stamp = stamp
        except FileNotFoundError:
            pass
        return self.state

    def predict(self, pixels):
        state = self.refresh()
        layers = len(state["weights"]) // 2
        x = np.asarray(pixels, dtype=float) / 16.0
        for i in range(layers):
            x = x @ state["weights"][i] + state["weights"][layers + i]
            if i < layers - 1:
                x = np.maximum(x, 0)
        return {"digit": int(np.argmax(x)), "epoch": state["epoch"]}


class Handler(BaseHTTPRequestHandler):
    model = None

    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path != "/healthz":
            self.reply(404, {"error": "not found"})
        elif self.model.refresh() is None:
            self.reply(503, {"error": "no checkpoint yet"})
        else:
            self.reply(200, {"epoch": self.model.state["epoch"]})

    def do_POST(self):
        if self.path != "/predict":
            self.reply(404, {"error": "not found"})
            return
        try:
            size = min(int(self.headers.get("Content-Length", "0")), 65536)
            pixels = json.loads(self.rfile.read(size))["pixels"]
            if len(pixels) != 64 or self.model.refresh() is None:
                raise ValueError("64 pixels and a trained model are needed")
            self.reply(200, self.model.predict(pixels))
        except (ValueError, KeyError, TypeError) as e:
            self.reply(400, {"error": str(e)})

    def log_message(self, fmt, *args):
        print(f"{self.address_string()} {fmt % args}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=int(os.environ.get("PORT", "8000")))
    parser.add_argument("--model", default=os.path.join(
        os.environ.get("ALLOT_CHECKPOINT_DIR", "."), "checkpoint.pickle"))
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    Handler.model = Model(args.model)
    server = ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
    print(f"serves on 127.0.0.1:{args.port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
