#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a digit classifier on scikit-learn's bundled data, data-parallel over the gang's tasks.

Each rank holds a shard of the training set. An epoch is one pass of every rank over its shard,
after which the weights are averaged by rank 0 and sent back. Rank 0 keeps the checkpoint in
ALLOT_CHECKPOINT_DIR and writes it every CHECKPOINT_EVERY epochs, at the end, and when the gang
is asked to stop (SIGTERM): a later attempt goes on from there.

Runs the same by hand: python3 train.py --epochs 20
"""
import argparse
import json
import os
import pickle
import signal
import socket
import struct
import sys
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

CHECKPOINT_EVERY = 5
RANK = int(os.environ.get("ALLOT_RANK", "0"))
WORLD = int(os.environ.get("ALLOT_TASK_COUNT", "1"))
ATTEMPT = int(os.environ.get("ALLOT_RESTART_COUNT", "0"))
FOLDER = os.environ.get("ALLOT_CHECKPOINT_DIR", ".")

stop_asked = False


def on_term(_signum, _frame):
    global stop_asked
    stop_asked = True


def say(text):
    print(f"[rank {RANK}] {text}", flush=True)


def write_atomic(path, data):
    part = f"{path}.{os.getpid()}"
    with open(part, "wb") as f:
        f.write(data)
    os.replace(part, path)


# ---- the ring of ranks: rank 0 gathers and sends back ------------------------------------------

def send(sock, value):
    data = pickle.dumps(value)
    sock.sendall(struct.pack(">I", len(data)) + data)


def receive(sock):
    def exactly(n):
        data = b""
        while len(data) < n:
            part = sock.recv(n - len(data))
            if not part:
                raise ConnectionError("a rank has gone")
            data += part
        return data
    return pickle.loads(exactly(struct.unpack(">I", exactly(4))[0]))


def rendezvous_path():
    return os.path.join(FOLDER, f"rendezvous-{ATTEMPT}")


def gather_ranks():
    """Rank 0: one connection from each other rank."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.5)
    write_atomic(rendezvous_path(), str(server.getsockname()[1]).encode())
    peers = {}
    while len(peers) < WORLD - 1 and not stop_asked:
        try:
            sock, _ = server.accept()
        except TimeoutError:
            continue
        sock.settimeout(60)
        peers[receive(sock)] = sock
    server.close()
    return peers


def join_rank_0():
    while not stop_asked:
        try:
            with open(rendezvous_path(), "rb") as f:
                port = int(f.read())
            sock = socket.create_connection(("127.0.0.1", port), timeout=60)
            send(sock, RANK)
            return sock
        except (OSError, ValueError):
            time.sleep(0.05)
    return None


# ---- the model ---------------------------------------------------------------------------------

def weights_of(model):
    return model.coefs_ + model.intercepts_


def set_weights(model, weights):
    layers = len(model.coefs_)
    model.coefs_ = [w.copy() for w in weights[:layers]]
    model.intercepts_ = [w.copy() for w in weights[layers:]]


def average(parts):
    return [np.mean(layer, axis=0) for layer in zip(*parts)]


def load_checkpoint():
    try:
        with open(os.path.join(FOLDER, "checkpoint.pickle"), "rb") as f:
            return pickle.load(f)
    except FileNotFoundError:
        return None


def save_checkpoint(epoch, weights, accuracy):
    state = {"epoch": epoch, "weights": weights, "accuracy": accuracy}
    write_atomic(os.path.join(FOLDER, "checkpoint.pickle"), pickle.dumps(state))


def exchange(peers, hub, weights):
    """Average of all ranks' weights, on every rank."""
    if WORLD == 1:
        return weights
    if RANK == 0:
        mean = average([weights] + [receive(s) for s in peers.values()])
        for sock in peers.values():
            send(sock, mean)
        return mean
    send(hub, weights)
    return receive(hub)


def train(args):
    digits = load_digits()
    x, y = digits.data / 16.0, digits.target
    held_out = np.arange(len(x)) % 5 == 0
    shard = np.flatnonzero(~held_out)[RANK::WORLD]
    model = MLPClassifier(hidden_layer_sizes=(64,), learning_rate_init=0.01, random_state=7)
    model.partial_fit(x[shard[:10]], y[shard[:10]], classes=np.arange(10))

    state = load_checkpoint()
    first = state["epoch"] + 1 if state else 1
    if state:
        set_weights(model, state["weights"])
        say(f"resumes from its checkpoint after epoch {state['epoch']}")
    else:
        say(f"starts from nothing with {len(shard)} samples")

    peers = gather_ranks() if RANK == 0 and WORLD > 1 else {}
    hub = join_rank_0() if RANK > 0 else None
    done, accuracy = first - 1, state["accuracy"] if state else 0.0
    weights = weights_of(model)
    for epoch in range(first, args.epochs + 1):
        if stop_asked:
            break
        begun = time.monotonic()
        model.partial_fit(x[shard], y[shard])
        try:
            weights = exchange(peers, hub, weights_of(model))
        except (ConnectionError, OSError):
            if stop_asked or RANK > 0:
                break
            say("lost a rank; the checkpoint keeps what was done")
            save_checkpoint(done, weights_of(model) if done == 0 else weights, accuracy)
            return 1
        set_weights(model, weights)
        done = epoch
        if RANK == 0:
            accuracy = float(model.score(x[held_out], y[held_out]))
            if epoch % CHECKPOINT_EVERY == 0:
                save_checkpoint(done, weights, accuracy)
                say(f"epoch {epoch}: held-out accuracy {accuracy:.3f}")
        rest = args.seconds_per_epoch - (time.monotonic() - begun)
        if rest > 0 and not stop_asked:
            time.sleep(rest)
    return finish(args, done, weights, accuracy)


def finish(args, done, weights, accuracy):
    if RANK == 0:
        save_checkpoint(done, weights, accuracy)
        say(f"checkpoint written after epoch {done}, held-out accuracy {accuracy:.3f}")
        report = os.environ.get("ALLOT_REPORT_PATH")
        if report:
            write_atomic(report, json.dumps({"epoch": done, "accuracy": accuracy}).encode())
    if done < args.epochs:
        say("stopped before the end, as asked")
        return 0 if stop_asked else 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seconds-per-epoch", type=float, default=0.0,
                        help="pace of an epoch at least, to watch it")
    signal.signal(signal.SIGTERM, on_term)
    return train(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
