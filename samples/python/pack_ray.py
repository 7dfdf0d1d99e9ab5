"""Packs a folder on a Ray cluster: one `h5pack --shard` for each task. All machines must see both folders.

    python pack_ray.py PHOTOS OUT/train.h5 --shards 8 --resize 64 --center-crop 64x64

The shards are read as one dataset by the name OUT/train-*-of-00008.h5. A task that is lost is started again, on
whatever machine is left, and goes on where the journal of its shard stands.
"""

from __future__ import annotations

import argparse
import os
import subprocess

import ray


def main() -> None:
    parser = argparse.ArgumentParser(epilog="other options go to h5pack folder", allow_abbrev=False)
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--cpus", type=int, default=1, help="threads of each task")
    parser.add_argument("--h5pack", default="h5pack")
    options, others = parser.parse_known_args()
    folder, out = os.path.abspath(options.folder), os.path.abspath(options.out)
    os.makedirs(os.path.dirname(out), exist_ok=True)

    def pack(shard: int) -> str:
        command = [options.h5pack, "folder", folder, "-o", out, "--shard", f"{shard}/{options.shards}"]
        command += ["--threads", str(options.cpus), "--resume", *others]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"shard {shard}: h5pack ended with {done.returncode}: {done.stderr}")
        return done.stdout.strip()

    ray.init()
    # Retried where the machine is gone; h5pack's own errors would come again.
    task = ray.remote(num_cpus=options.cpus, max_retries=3)(pack)
    waiting = [task.remote(shard) for shard in range(options.shards)]
    while waiting:
        ready, waiting = ray.wait(waiting)
        print(ray.get(ready[0]), flush=True)


if __name__ == "__main__":
    main()
