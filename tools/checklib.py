# SPDX-License-Identifier: Apache-2.0
"""What the checks of the source share: finding files, and reporting in TAP.

A check prints one test for each of its rules; whatever breaks a rule is listed as comments
below it. `--root FOLDER` points a check at another tree, which is how the checks are tested.
"""

import argparse
import os
import re
import sys

SKIPPED_FOLDERS = {".git", "__pycache__", "build", "node_modules"}


def arguments(description, *extra):
    """Parses --root, and the further options given as (name, keyword arguments)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(__file__)) or "..")
    for name, options in extra:
        parser.add_argument(name, **options)
    args = parser.parse_args()
    args.root = os.path.abspath(args.root)
    return args


def files(root, folders, suffixes):
    """Paths relative to ROOT, in a fixed order, of the files in FOLDERS with these suffixes."""
    found = []
    for folder in folders:
        for at, subfolders, names in os.walk(os.path.join(root, folder)):
            subfolders[:] = [s for s in subfolders
                             if s not in SKIPPED_FOLDERS and not s.startswith("build-")]
            found.extend(os.path.relpath(os.path.join(at, name), root)
                         for name in names if name.endswith(suffixes))
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def blank_text(code):
    """CODE with comments and the inside of literals replaced by blanks; lines stay in place."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), code)


def report(rules):
    """Prints RULES, pairs of a name and a list of violations, as TAP and ends the program."""
    print(f"1..{len(rules)}")
    for number, (name, violations) in enumerate(rules, 1):
        print(f"{'not ok' if violations else 'ok'} {number} - {name}")
        for violation in violations:
            print(f"#   {violation}")
    sys.exit(1 if any(violations for _, violations in rules) else 0)
