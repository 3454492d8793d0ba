#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/setup installs what is missing and nothing else; apt and dpkg are played by scripts."""

import os
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import tap  # noqa: E402

# Says "installed" for every package asked for except those in $MISSING.
DPKG_QUERY = """#!/bin/bash
for name in "$@"; do
    case $name in -*) continue ;; esac
    case " $MISSING " in *" $name "*) continue ;; esac
    echo "ii  $name"
done
[ -z "$MISSING" ]
"""
APT_GET = """#!/bin/bash
echo "$DEBIAN_FRONTEND $*" >>"$LOG"
case " $* " in *" $FAIL "*) exit 100 ;; esac
"""
SUDO = """#!/bin/bash
echo "sudo $1" >>"$LOG"
while [[ $1 == -* ]]; do shift; done
exec "$@"
"""


def setup(*groups, missing="", fail="none", uid=0, sudo=True, **env):
    """Returns (exit status, standard error, lines that apt-get and sudo were called with)."""
    with tempfile.TemporaryDirectory(prefix="allot-setup-") as folder:
        programs = {"dpkg-query": DPKG_QUERY, "apt-get": APT_GET, "id": f"#!/bin/bash\necho {uid}",
                    "sleep": "#!/bin/bash\n"}
        if sudo:
            programs["sudo"] = SUDO
        for name, text in programs.items():
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o700)
        for name in ("bash", "awk", "grep", "dirname", "env"):
            os.symlink(subprocess.check_output(["which", name], text=True).strip(),
                       os.path.join(folder, name))
        log = os.path.join(folder, "log")
        done = subprocess.run([os.path.join(ROOT, "tools/setup"), *groups], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              env={"PATH": folder, "LOG": log, "MISSING": missing, "FAIL": fail,
                                   **env})
        calls = []
        if os.path.exists(log):
            with open(log, encoding="utf-8") as file:
                calls = file.read().splitlines()
        return done.returncode, done.stderr, calls


def test_nothing_missing_calls_nothing():
    assert setup() == (0, "", [])


def test_missing_packages_are_installed():
    status, error, calls = setup(missing="jq meson")
    assert status == 0, error
    assert len(calls) == 2 and " update" in calls[0], calls
    assert calls[1].endswith("install --no-install-recommends meson jq"), calls
    assert all(call.startswith("noninteractive -q -y ") for call in calls), calls


def test_groups_are_installed_on_demand():
    assert setup(missing="clang")[2] == []
    assert setup("fuzz", missing="clang")[2][-1].endswith(" clang")


def test_the_update_is_tried_twice():
    status, error, calls = setup(missing="jq", fail="update")
    assert status == 0, error
    assert ["update" in call for call in calls] == [True, True, False], calls
    assert "could not be updated" in error


def test_a_failed_installation_is_named():
    status, error, _ = setup(missing="jq", fail="install")
    assert status == 1
    assert error.endswith("setup: could not install: jq\n"), error


def test_sudo_is_used_without_a_prompt():
    status, error, calls = setup(missing="jq", uid=1000)
    assert status == 0, error
    assert calls[0] == "sudo -n", calls


def test_without_root_and_sudo_it_says_what_to_do():
    status, error, calls = setup(missing="jq", uid=1000, sudo=False)
    assert (status, calls) == (1, [])
    assert "as root, or install sudo" in error and "jq" in error


def test_it_can_be_left_out():
    assert setup(missing="jq", ALLOT_SKIP_SETUP="1") == (0, "", [])


if __name__ == "__main__":
    tap.run(globals())
