#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the simulated driver has for each of its 637 symbols.

usage: generate.py SYMBOLS VERSIONS FUNCTIONS EXPORTS STUBS TABLE

SYMBOLS (src/share/symbols.list) names them, VERSIONS (versions.list) says how cuGetProcAddress
finds them, FUNCTIONS (src/share/cuda_fns.h) has the types of those that are simulated. Made are:
    EXPORTS  a header that declares all with default visibility, with their types where known
    STUBS    a weak definition of each: what nobody defines is counted and not supported
    TABLE    name, version and stream of each, in the order of names, for look-ups
"""

import re
import sys

LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n"


def rows(path):
    with open(path, encoding="ascii") as file:
        return [line.split() for line in file if line.strip() and not line.startswith("#")]


def plain(symbol):
    """The symbol whose type SYMBOL has: variants with streams per thread have none of their own."""
    return re.sub(r"_pt[sd][zs]$", "", symbol)


def exports(symbols, typed):
    yield LICENCE + "#pragma GCC visibility push(default)\n"
    for symbol in symbols:
        if plain(symbol) in typed:
            yield f"fn_{plain(symbol)} {symbol};\n"
    yield "#pragma GCC visibility pop\n"


def stubs(symbols):
    yield LICENCE + "int drv_unsimulated(unsigned index);\n"
    for index, symbol in enumerate(symbols):
        yield (f'__attribute__((weak, visibility("default"))) int {symbol}(void);\n'
               f"int {symbol}(void)\n{{\n    return drv_unsimulated({index});\n}}\n")


def table(versions):
    yield LICENCE + '#include "lookup.h"\n'
    for symbol, _, _, _ in versions:
        yield f"extern int {symbol}(void);\n"
    yield "const struct lookup_row lookup_rows[] = {\n"
    for symbol, name, version, stream in sorted(versions, key=lambda row: (row[1], int(row[2]))):
        thread = "true" if stream == "thread" else "false"
        yield f'    {{"{name}", "{symbol}", {version}, {thread}, (void *){symbol}}},\n'
    yield "};\n"
    yield f"const unsigned lookup_row_count = {len(versions)};\n"


def main():
    symbol_path, version_path, function_path, *outputs = sys.argv[1:]
    symbols = [row[0] for row in rows(symbol_path)]
    versions = rows(version_path)
    with open(function_path, encoding="utf-8") as file:
        typed = set(re.findall(r"\bfn_(cu\w+)(?:\(|;)", file.read()))
    if symbols != sorted(set(symbols)) or sorted(row[0] for row in versions) != symbols:
        sys.exit("generate.py: the lists of symbols and of versions do not agree, or not sorted")
    if not typed <= set(symbols):
        sys.exit(f"generate.py: not exported: {' '.join(sorted(typed - set(symbols)))}")
    for path, lines in zip(outputs, (exports(symbols, typed), stubs(symbols), table(versions))):
        with open(path, "w", encoding="ascii") as file:
            file.writelines(lines)


if __name__ == "__main__":
    main()
