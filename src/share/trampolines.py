#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what stands before each symbol of a library of the driver.

usage: trampolines.py PREFIX SYMBOLS ASSEMBLY HEADER

ASSEMBLY (x86-64) has one exported function per name in SYMBOLS, which jumps through PREFIX_entry[].
With the prefix share (the driver itself) it waits first while the gate is closed. HEADER numbers
and names the symbols.
"""

import sys

HEAD = """# SPDX-License-Identifier: Apache-2.0
# Made by trampolines.py.
    .text

# The rest of a call whose arguments are in registers: \\what(index) is called with all of them
# kept. Arguments on the stack are not touched.
    .macro aside what
    .cfi_startproc
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    andq $-16, %rsp
    subq $208, %rsp
    movq %rdi, 0(%rsp)
    movq %rsi, 8(%rsp)
    movq %rdx, 16(%rsp)
    movq %rcx, 24(%rsp)
    movq %r8, 32(%rsp)
    movq %r9, 40(%rsp)
    movq %rax, 48(%rsp)
    movq %r11, 56(%rsp)
    movups %xmm0, 64(%rsp)
    movups %xmm1, 80(%rsp)
    movups %xmm2, 96(%rsp)
    movups %xmm3, 112(%rsp)
    movups %xmm4, 128(%rsp)
    movups %xmm5, 144(%rsp)
    movups %xmm6, 160(%rsp)
    movups %xmm7, 176(%rsp)
    movl %r11d, %edi
    call \\what
    movq 0(%rsp), %rdi
    movq 8(%rsp), %rsi
    movq 16(%rsp), %rdx
    movq 24(%rsp), %rcx
    movq 32(%rsp), %r8
    movq 40(%rsp), %r9
    movq 48(%rsp), %rax
    movq 56(%rsp), %r11
    movups 64(%rsp), %xmm0
    movups 80(%rsp), %xmm1
    movups 96(%rsp), %xmm2
    movups 112(%rsp), %xmm3
    movups 128(%rsp), %xmm4
    movups 144(%rsp), %xmm5
    movups 160(%rsp), %xmm6
    movups 176(%rsp), %xmm7
    leave
    .cfi_def_cfa %rsp, 8
    leaq {prefix}_entry(%rip), %r10
    notrack jmp *(%r10,%r11,8)
    .cfi_endproc
    .endm

# The first call of a symbol: {prefix}_resolve() fills {prefix}_entry[].
    .hidden {prefix}_first
    .globl {prefix}_first
    .type {prefix}_first, @function
{prefix}_first:
    aside {prefix}_resolve
    .size {prefix}_first, . - {prefix}_first
"""

CLOSED = """
    .type share_closed, @function
share_closed:
    aside share_wait_open
    .size share_closed, . - share_closed
"""

GATE = """
    movq share_gate(%rip), %r10
    cmpl $0, (%r10)
    jne share_closed"""

SYMBOL = """
    .p2align 4
    .globl {name}
    .type {name}, @function
{name}:
.Lsymbol{number}:
    .cfi_startproc
    endbr64
    movl ${number}, %r11d{gate}
    notrack jmp *{prefix}_entry+{offset}(%rip)
    .cfi_endproc
    .size {name}, . - {name}
"""

TABLES = """
    .section .data.rel.local, "aw"
    .p2align 6
    .hidden {prefix}_entry
    .globl {prefix}_entry
    .type {prefix}_entry, @object
{prefix}_entry:
    .rept {count}
    .quad {prefix}_first
    .endr
    .size {prefix}_entry, . - {prefix}_entry

    .section .data.rel.ro.local, "aw"
    .p2align 4
    .hidden {prefix}_trampoline
    .globl {prefix}_trampoline
    .type {prefix}_trampoline, @object
{prefix}_trampoline:
{addresses}
    .size {prefix}_trampoline, . - {prefix}_trampoline
    .section .note.GNU-stack, "", @progbits
"""

HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
/* Made by trampolines.py: the symbols of a library by number, in the order of their names. */
#ifndef ALLOT_{upper}_SYMBOLS_H
#define ALLOT_{upper}_SYMBOLS_H

enum {prefix}_symbol {{
{numbers}
    {upper}_SYMBOLS
}};

#define {upper}_SYMBOL_NAMES \\
{names}

#endif
"""


def main():
    prefix, path, assembly, header = sys.argv[1:]
    names = open(path, encoding="ascii").read().split()
    gate = GATE if prefix == "share" else ""
    if names != sorted(set(names)):
        sys.exit(f"{path}: names must be sorted, each once")
    with open(assembly, "w", encoding="ascii") as out:
        out.write(HEAD.replace("{prefix}", prefix) + (CLOSED if gate else ""))
        for number, name in enumerate(names):
            out.write(SYMBOL.format(prefix=prefix, name=name, number=number, offset=8 * number,
                                    gate=gate))
        addresses = "\n".join(f"    .quad .Lsymbol{i}" for i in range(len(names)))
        out.write(TABLES.format(prefix=prefix, count=len(names), addresses=addresses))
    with open(header, "w", encoding="ascii") as out:
        numbers = "\n".join(f"    SYM_{name}," for name in names)
        out.write(HEADER.format(prefix=prefix, upper=prefix.upper(), numbers=numbers,
                                names=" \\\n".join(f'    "{name}",' for name in names)))


main()
