# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program for which one system call fails, as a container's seccomp profile makes it fail.

    deny_system_call.py NUMBER ERRNO PROGRAM [ARGUMENT]…
"""

import ctypes
import os
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000


class Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(Instruction))]


def deny(number, error):
    instructions = (Instruction * 4)(
        Instruction(LOAD_WORD, 0, 0, 0),  # the system call's number
        Instruction(JUMP_IF_EQUAL, 0, 1, number),
        Instruction(RETURN, 0, 0, FAIL | error),
        Instruction(RETURN, 0, 0, ALLOW),
    )
    program = Program(len(instructions), instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0
    ):
        sys.exit(f"cannot deny system call {number}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    deny(int(sys.argv[1]), int(sys.argv[2]))
    os.execv(sys.argv[3], sys.argv[3:])
