# SPDX-License-Identifier: Apache-2.0
"""The smallest harness that speaks TAP: each function test_* of a module is one test.

    def test_addition():
        assert 1 + 1 == 2

    if __name__ == "__main__":
        tap.run(globals())

A test fails by any exception and is skipped by tap.Skip("reason").
"""

import sys
import traceback


class Skip(Exception):
    """Raised by a test that cannot run here; the text says why."""


def run(names):
    """Runs the test_* functions among NAMES in their order and ends the program."""
    tests = [(name, f) for name, f in names.items() if name.startswith("test_") and callable(f)]
    failed = False
    print(f"1..{len(tests)}", flush=True)
    for number, (name, function) in enumerate(tests, 1):
        line = f"{number} - {name.removeprefix('test_')}"
        try:
            function()
            print(f"ok {line}", flush=True)
        except Skip as reason:
            print(f"ok {line} # SKIP {reason}", flush=True)
        except Exception:  # the next test shall run whatever this one ran into
            failed = True
            print(f"not ok {line}")
            for text in traceback.format_exc().splitlines():
                print(f"#   {text}")
            sys.stdout.flush()
    sys.exit(1 if failed else 0)
