#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that each rule of the checks fails on a tree that breaks it, and passes on one that
does not."""

import os
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import tap  # noqa: E402

SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
GOOD_HEADER = (SPDX + "/* Doubles. */\n#ifndef ALLOT_BASE_A_H\n#define ALLOT_BASE_A_H\n"
               "#include <stdint.h>\n\n/* Twice X. */\nint64_t twice(int64_t x);\n#endif\n")


def run_check(check, tree, *options):
    """Runs a check on TREE, a mapping from path to text; returns (exit status, output)."""
    with tempfile.TemporaryDirectory(prefix="allot-check-") as root:
        for path, text in tree.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        options = [option.replace("ROOT", root) for option in options]
        done = subprocess.run([os.path.join(ROOT, "tools", check), "--root", root, *options],
                              capture_output=True, text=True)
        assert not done.stderr, done.stderr
        return done.returncode, done.stdout


def passes(check, tree, *options):
    status, output = run_check(check, tree, *options)
    assert status == 0 and "not ok" not in output, output


def breaks(rule, text, check, tree, *options):
    """RULE, and no other, is broken, and TEXT is named below it."""
    status, output = run_check(check, tree, *options)
    broken = [line for line in output.splitlines() if line.startswith("not ok")]
    assert status == 1 and len(broken) == 1 and broken[0].startswith(f"not ok {rule} "), output
    assert text in output, output


def test_layers_pass_when_they_point_down():
    passes("check-layers", {
        "src/core/a.c": '#include "model/b.h"\n#include <allot/sched.h>\n',
        "src/engine/local/a.c": '#include "core/engine_port.h"\n',
        "src/store/a.c": "#include <sqlite3.h>\n",
        "src/bin/a.c": '#include "api/x.h"\n#include <sqlite3.h>\n',
        "src/sched/a.c": "#include <string.h>\n",
    })


def test_layers_may_not_point_up():
    breaks(1, 'src/model/a.c:2: model may not include "core/b.h"', "check-layers",
           {"src/model/a.c": '\n#include "core/b.h"\n'})


def test_store_sees_only_the_ports_of_core():
    breaks(1, 'store may not include "core/core.h"', "check-layers",
           {"src/store/a.c": '#include "core/core.h"\n'})


def test_engine_is_invisible_to_core():
    breaks(1, 'core may not include "engine/local/a.h"', "check-layers",
           {"src/core/a.c": '  #  include "engine/local/a.h"\n'})


def test_includes_are_full_paths():
    breaks(1, '"b.h" is not a full path', "check-layers", {"src/base/a.c": '#include "b.h"\n'})
    breaks(1, "is not a full path", "check-layers", {"src/base/a.c": '#include "base/../x/b.h"\n'})


def test_unknown_layers_are_named():
    breaks(1, "the layer 'extra' is not in the table", "check-layers",
           {"src/extra/a.c": '#include "base/b.h"\n'})


def test_libraries_stay_in_their_layer():
    for layer, header in (("api", "microhttpd.h"), ("core", "sqlite3.h"), ("net", "json-c/json.h"),
                          ("model", "yaml.h"), ("cli", "curl/curl.h")):
        breaks(2, f"may include <{header}>", "check-layers",
               {f"src/{layer}/a.c": f"#include <{header}>\n"})


def test_the_scheduler_includes_no_system_header():
    for header in ("time.h", "pthread.h", "unistd.h", "sys/types.h"):
        breaks(3, f"may not include <{header}>", "check-layers",
               {"src/sched/a.c": f"#include <{header}>\n"})


def test_good_headers_pass():
    passes("check-headers", {"src/base/a.h": GOOD_HEADER})


def test_headers_compile_alone():
    breaks(1, "unknown type name", "check-headers",
           {"src/base/a.h": GOOD_HEADER.replace("#include <stdint.h>\n", "")})


def test_headers_have_the_guard_of_their_path():
    breaks(2, "the guard is not ALLOT_BASE_A_H", "check-headers",
           {"src/base/a.h": GOOD_HEADER.replace("ALLOT_BASE_A_H", "A_H")})


def test_headers_say_what_they_are_for():
    breaks(3, "src/base/a.h", "check-headers",
           {"src/base/a.h": GOOD_HEADER.replace("/* Doubles. */\n", "")})


def test_prototypes_have_comments():
    breaks(4, "twice(int64_t x);' has no comment", "check-headers",
           {"src/base/a.h": GOOD_HEADER.replace("/* Twice X. */\n", "")})
    breaks(4, "once(void);' has no comment", "check-headers",
           {"src/base/a.h": GOOD_HEADER.replace("/* Twice X. */\n", "int once(void);\n/* X. */\n")})


def test_headings_serve_their_paragraph():
    passes("check-headers", {"src/base/a.h": GOOD_HEADER.replace(
        "/* Twice X. */\n", "/* ---- Numbers ---- */\n\nint once(void);\n")})


def purity(tree, source, below="int b(void) { return 1; }", archive="rcs"):
    """Builds libsched.a of SOURCE and libbase.a of BELOW beside TREE."""
    with tempfile.TemporaryDirectory(prefix="allot-purity-") as folder:
        for name, text in (("sched", source), ("base", below)):
            path = os.path.join(folder, name)
            subprocess.run(["cc", "-O1", "-x", "c", "-", "-c", "-o", f"{path}.o"], input=text,
                           check=True, text=True)
            subprocess.run(["ar", archive, f"lib{name}.a", f"{name}.o"], check=True, cwd=folder)
        return tree("check-purity", {}, "--sched", f"{folder}/libsched.a", "--below",
                    f"{folder}/libbase.a")


def test_pure_code_passes():
    for archive in ("rcs", "rcsT"):
        purity(passes, "#include <string.h>\nint b(void);\n"
               "static const char *const names[] = {\"a\"};\n"
               "long s(const char *x, int i) { return strlen(x) + b() + names[i][0]; }",
               archive=archive)


def test_impure_calls_are_found():
    for call in ("time(0)", "getenv(\"X\")", "rand()", "open(\"x\", 0)", "pthread_self()",
                 "printf(\"x%d\", 1)", "write(1, \"x\", 1)"):
        name = call.split("(")[0]
        purity(lambda *a: breaks(1, name, *a), "#include <fcntl.h>\n#include <pthread.h>\n"
               "#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n#include <unistd.h>\n"
               f"long s(void) {{ return (long){call}; }}")


def test_impure_calls_below_are_found():
    purity(lambda *a: breaks(1, "getpid, from base.o", *a),
           "int b(void); int s(void) { return b(); }",
           "#include <unistd.h>\nint b(void) { return getpid(); }")


def test_unused_members_below_do_not_matter():
    purity(passes, "int s(void) { return 2; }",
           "#include <unistd.h>\nint b(void) { return getpid(); }")


def test_variables_are_found():
    for variable in ("int state = 1;", "static int state; int *p(void) { return &state; }",
                     "_Thread_local int state;"):
        purity(lambda *a: breaks(2, "state in ", *a), variable)


def test_good_sources_pass():
    passes("check-words", {
        "src/base/a.c": SPDX + "/* never call sprintf() */\nint f(void)\n{\n"
                               "    return snprintf(0, 0, \"strcpy(%d)\", x.atoi(1));\n}\n",
        "tools/x": "#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n",
        "tests/data.txt": "x" * 200,
    })


def test_banned_functions_are_found():
    for name in ("strcpy", "strcat", "sprintf", "vsprintf", "gets", "localtime", "gmtime", "strtok",
                 "atoi"):
        breaks(1, f"src/a/a.c:3: {name}() is banned", "check-words",
               {"src/a/a.c": SPDX + f"void f(void)\n{{ {name} (x); }}\n"})


def test_missing_licences_are_found():
    breaks(2, "src/a/a.c", "check-words", {"src/a/a.c": "int a;\n"})
    breaks(2, "tools/x", "check-words", {"tools/x": "#!/bin/sh\n\n\n# SPDX-License-Identifier\n"})
    breaks(2, "src/a/meson.build", "check-words", {"src/a/meson.build": "x = 1\n"})


def test_long_lines_are_found():
    breaks(3, "src/a/a.c:2: 101 columns", "check-words",
           {"src/a/a.c": SPDX + "//" + "é" * 99 + "\n"})
    passes("check-words", {"src/a/a.c": SPDX + "//" + "é" * 98 + "\n"})


def test_long_files_are_found():
    breaks(4, "1201 lines", "check-words", {"src/a/a.c": SPDX + "\n" * 1200})


def test_long_functions_are_found():
    body = "    x();\n"
    breaks(5, "f() has 101 lines", "check-words",
           {"src/a/a.c": SPDX + "static int f(void)\n{\n" + body * 98 + "}\n"})
    passes("check-words", {"src/a/a.c": SPDX + "static int f(void)\n{\n" + body * 97 + "}\n"})


if __name__ == "__main__":
    tap.run(globals())
