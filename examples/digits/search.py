#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Random search over a support vector machine's settings on the digits: batch work that can be
stopped at any time. Prints each trial; keeps the best in ALLOT_CHECKPOINT_DIR/best.json."""
import argparse
import json
import os
import random

from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    args = parser.parse_args()
    path = os.path.join(os.environ.get("ALLOT_CHECKPOINT_DIR", "."), "best.json")
    rng = random.Random(int(os.environ.get("ALLOT_WORKLOAD_ID", "0")))
    x, y = (part[:400] for part in load_digits(return_X_y=True))
    best = {"accuracy": 0.0}
    for trial in range(1, args.trials + 1):
        c, gamma = 10 ** rng.uniform(-2, 3), 10 ** rng.uniform(-6, -1)
        accuracy = float(cross_val_score(SVC(C=c, gamma=gamma), x, y, cv=3).mean())
        if accuracy > best["accuracy"]:
            best = {"accuracy": accuracy, "C": c, "gamma": gamma, "trial": trial}
            with open(path + ".part", "w") as f:
                json.dump(best, f)
            os.replace(path + ".part", path)
        print(f"trial {trial}: {accuracy:.3f} (best {best['accuracy']:.3f})", flush=True)


if __name__ == "__main__":
    main()
