"""Writes the files of unfinished/, what a writer leaves that is killed: make_unfinished.py FOLDER WRITER_CHILD.

They were written once, by the writer of version 2 of the format and of the journal, and stay as they are. strace kills
it in the middle of the pixels, and in the middle of what libhdf5 changes when rows were left out.
"""

import pathlib
import subprocess
import sys

# Name -> at which call of pwrite64 on the two files the writer is killed.
KILLED_AT = {"pixels": 18, "structure": 29}


def main():
    folder, writer_child = pathlib.Path(sys.argv[1]) / "unfinished", sys.argv[2]
    folder.mkdir()
    for name, call in KILLED_AT.items():
        out = folder / f"v2-{name}.h5"
        subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "-P", f"{out}.partial", "-P", f"{out}.partial.journal",
                        "-e", f"inject=pwrite64:signal=KILL:when={call}", writer_child, out, "26", "23"])


if __name__ == "__main__":
    main()
