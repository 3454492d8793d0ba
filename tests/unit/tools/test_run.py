#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The test runner counts what its suites say, and does not believe suites that break off."""

import os
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import tap  # noqa: E402


def run(*scripts):
    """Runs shell scripts as suites; returns (exit status, output, last line)."""
    with tempfile.TemporaryDirectory(prefix="allot-run-") as folder:
        paths = []
        for number, script in enumerate(scripts):
            paths.append(os.path.join(folder, f"suite{number}.sh"))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(f"#!/bin/bash\n{script}\n")
            os.chmod(paths[-1], 0o700)
        done = subprocess.run([os.path.join(ROOT, "tests/run"), *paths], capture_output=True,
                              text=True, timeout=60)
    return done.returncode, done.stdout, done.stdout.splitlines()[-1]


def check(script, last, *texts, status=1):
    got_status, output, got_last = run(script)
    assert got_last == last, output
    assert got_status == status, output
    for text in texts:
        assert text in output, output


def test_passed_tests_add_up():
    status, output, last = run("echo 1..2; echo ok 1 - a; echo ok 2 - b", "echo ok 1; echo 1..1")
    assert (status, last) == (0, "3 passed, 0 failed"), output


def test_failed_tests_are_shown():
    check("echo 1..2; echo ok 1 - a; echo not ok 2 - b; echo '# why'; exit 1",
          "1 passed, 1 failed", "not ok 2 - b", "# why")


def test_expected_failures_count_as_neither():
    check("echo 1..3; echo ok 1; echo 'not ok 2 - x # TODO later'; echo 'ok 3 - y # TODO later'",
          "1 passed, 0 failed", "2 expected to fail", "passes unexpectedly: ok 3 - y", status=0)


def test_skips_are_shown_with_their_reason():
    check("echo 1..2; echo ok 1; echo 'ok 2 - gpu # SKIP no driver'", "1 passed, 0 failed",
          "skipped: gpu: no driver", status=0)
    check("echo '1..0 # SKIP no cgroups'", "0 passed, 0 failed", "skipped: no cgroups", status=0)


def test_a_crash_fails():
    check("echo 1..1; echo ok 1; kill -SEGV $$", "1 passed, 1 failed", "died of SIGSEGV")


def test_an_exit_status_fails():
    check("echo 1..1; echo ok 1; exit 3", "1 passed, 1 failed", "exit status 3")


def test_silence_fails():
    check("true", "0 passed, 1 failed", "no plan was printed")
    check("echo 1..0", "0 passed, 0 failed", "no reason given", status=0)


def test_a_broken_plan_fails():
    check("echo 1..3; echo ok 1", "1 passed, 1 failed", "3 tests were planned, 1 ran")
    check("echo ok 1", "1 passed, 1 failed", "no plan was printed")


def test_bailing_out_fails():
    check("echo 1..1; echo ok 1; echo 'Bail out! no server'", "1 passed, 1 failed", "no server")


def test_the_time_limit_is_kept():
    check("# test: timeout=1\necho 1..1; echo ok 1; sleep 30", "1 passed, 1 failed",
          "took longer than 1 s")


def test_what_a_suite_leaves_running_ends_with_it():
    check("sleep 30 & echo 1..1; echo ok 1", "1 passed, 0 failed", status=0)


def test_several_plans_add_up():
    check("echo 1..1; echo ok 1; echo 1..2; echo ok 1; echo ok 2", "3 passed, 0 failed", status=0)


def test_a_sanitizer_report_fails():
    check("echo 1..1; echo ok 1; file=${ASAN_OPTIONS#log_path=}; echo oops >${file%%:*}.1",
          "1 passed, 1 failed", "a sanitizer reported an error", "oops")


def test_a_missing_program_fails():
    done = subprocess.run([os.path.join(ROOT, "tests/run"), "/dev/null"], capture_output=True,
                          text=True)
    assert done.returncode == 1
    assert done.stdout.endswith("\n0 passed, 1 failed\n"), done.stdout


if __name__ == "__main__":
    tap.run(globals())
