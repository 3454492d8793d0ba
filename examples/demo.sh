#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plays the story of one shared node with real processes; see tests/e2e/story.py.
exec /usr/bin/python3 "$(dirname "$0")/../tests/e2e/story.py" --demo
