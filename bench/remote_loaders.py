"""How fast loaders deliver images from a web server, each from its own format: chunkio, MosaicML Streaming, LitData, WebDataset.

    python3 bench/remote_loaders.py FILE.h5 --dir DIR [--python VENV/bin/python] [--rounds 5] [--batch 256]

FILE has images [N,H,W,C] of uint8; DIR keeps what the loaders read, which is written first. It is served on the loopback
as in remote.py: by nginx as fast as it can, and by a server with 60 ms a request and 125 MB/s (1 Gb/s) in all. Each round
runs each loader in a process of its own, in another order, for two epochs: the first
with nothing on the disk, the second with what the loader kept there. `chunkio-kept` has a cache on the disk
(remote_cache), as Streaming and LitData always have; `chunkio` and WebDataset keep nothing. Before the clock runs, an
epoch of each is compared with FILE.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from remote import FarServer, Nginx

LOADERS = ("chunkio", "chunkio-kept", "mosaicml", "litdata", "webdataset")
PROGRAM = pathlib.Path(__file__).parent / "peers" / "remote_epochs.py"


class Runs:
    """Runs of one loader with one server."""

    def __init__(self, loader, server, options):
        self.loader, self.server, self.options = loader, server, options
        self.epochs = ([], [])

    def process(self, folder, *more):
        return subprocess.Popen(
            [self.options.python, PROGRAM, self.loader, self.options.file, "--dir", self.options.dir, "--server", self.server.url,
             "--kept", folder, "--batch", str(self.options.batch), *more],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def check(self):
        with tempfile.TemporaryDirectory(dir=self.options.dir) as folder:
            if self.process(folder, "--check").wait() != 0:
                raise SystemExit(f"{self.loader} did not deliver what the file holds")

    def run(self):
        folder = tempfile.mkdtemp(dir=self.options.dir)
        process = self.process(folder)
        before = self.server.traffic()
        for epochs in self.epochs:
            line = process.stdout.readline()
            if not line:
                raise SystemExit(f"{self.loader} ended early")
            after = self.server.traffic()
            epochs.append(json.loads(line) | {"requests": after[0] - before[0], "bytes": after[1] - before[1]})
            before = after
            process.stdin.write("\n")
            process.stdin.flush()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)

    def report(self):
        def spread(values, unit=1.0, digits=0):
            values = [value / unit for value in values]
            return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"

        cells = [self.loader]
        for epochs in self.epochs:
            cells += [spread([one["images"] / one["seconds"] for one in epochs], 1000, 1),
                      spread([one["first_batch_seconds"] for one in epochs], digits=2),
                      f"{statistics.median(one['requests'] for one in epochs):,.0f}",
                      f"{statistics.median(one['bytes'] for one in epochs) / 1e6:,.0f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--dir", type=lambda path: str(pathlib.Path(path).resolve()), required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=256)
    options = parser.parse_args()
    root = pathlib.Path(options.dir).parent
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        far, nginx = FarServer(root), Nginx(folder, root)
        try:
            for server, about in ((nginx, "nginx, no delay"), (far, "60 ms a request, 125 MB/s")):
                all_runs = [Runs(loader, server, options) for loader in LOADERS]
                for runs in all_runs:
                    if runs.process(name, "--write").wait() != 0:
                        raise SystemExit(f"{runs.loader} cannot write its format")
                    runs.check()
                for turn in range(options.rounds):
                    for runs in all_runs[turn % len(LOADERS):] + all_runs[:turn % len(LOADERS)]:
                        runs.run()
                print(f"\n{about}; {options.rounds} rounds, median (least to most)\n\n"
                      "| loader | thousand images/s | first batch, s | requests | MB | second epoch: thousand images/s "
                      "| first batch, s | requests | MB |\n|---|---|---|---|---|---|---|---|---|", flush=True)
                for runs in all_runs:
                    runs.report()
        finally:
            nginx.close()


if __name__ == "__main__":
    main()
