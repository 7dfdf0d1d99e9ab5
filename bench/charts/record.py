#!/usr/bin/env python3
"""Records a session of h5pack in a terminal of 80 columns, as text: bench/charts/terminal.txt, which draw.py draws.

    bench/charts/record.py BUILD        # BUILD: a build tree with h5pack and the samples, such as build/release

The images are drawn by chunkio-make-pictures. Of a progress line the last state is kept.
"""

import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

OUT = pathlib.Path(__file__).resolve().parent / "terminal.txt"
COMMANDS = ["h5pack folder photos/train -o train.h5", "h5pack doctor train.h5 --step-ms 4 --simulate-disk hdd"]


def run(command, folder, path):
    """What a terminal shows after `command`."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 80, 0, 0))
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(command.split(), cwd=folder, stdin=its, stdout=its, stderr=its, env=environment) as process:
        os.close(its)
        said = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the terminal has no writer any more
                break
            if not part:
                break
            said += part
    os.close(ours)
    if process.returncode != 0:
        raise SystemExit(f"{command} ended with {process.returncode}:\n{said.decode()}")
    shown = []
    for line in said.decode().replace("\r\n", "\n").split("\n"):
        # A carriage return begins the line anew; what erases to its end follows the text.
        states = [re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", state) for state in line.split("\r")]
        states = [state for state in states if state.strip()]
        shown.append(states[-1].rstrip() if states else "")
    return "\n".join(shown).rstrip("\n")


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([build / "samples/chunkio-make-pictures", "photos", "--count", "30000"], cwd=folder, check=True, capture_output=True)
        OUT.write_text("\n\n".join(f"$ {command}\n{run(command, folder, build / 'tools/h5pack')}" for command in COMMANDS) + "\n")


if __name__ == "__main__":
    main()
