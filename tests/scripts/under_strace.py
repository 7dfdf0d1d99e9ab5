"""Programs under strace, which shows their system calls and makes them fail."""

import functools
import os
import subprocess
import unittest


@functools.cache
def strace_works():
    """Whether system calls may be watched here; containers often forbid it."""
    try:
        return subprocess.run(["strace", "-o", os.devnull, "true"], stderr=subprocess.DEVNULL).returncode == 0
    except FileNotFoundError:
        return False


required = unittest.skipUnless(strace_works(), "strace is not installed or ptrace is not permitted")


def environment():
    """Of a process to be traced: LeakSanitizer cannot work under ptrace."""
    return {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
