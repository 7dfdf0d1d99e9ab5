"""Runs the quick start on its own images and on folders as people have them.

    quickstart_test.py QUICKSTART_SH SCRATCH
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys


def main():
    script, scratch = sys.argv[1], pathlib.Path(sys.argv[2])
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    failures = []

    def quickstart(name, *arguments):
        """Output of a run whose results lie in scratch/name."""
        print(f"+ quickstart.sh {' '.join(map(str, arguments))}", flush=True)
        result = subprocess.run(
            ["bash", script, *map(str, arguments)], capture_output=True, text=True, check=False,
            env={**os.environ, "CHUNKIO_QUICKSTART_OUT": str(scratch / name)})
        print(result.stdout, result.stderr, sep="", flush=True)
        if result.returncode != 0:
            failures.append(f"{name}: exit code {result.returncode}")
        elif not (scratch / name / "sheet.png").is_file():
            failures.append(f"{name}: no contact sheet")
        return result.stdout

    def expect_accuracy(name, output):
        accuracies = re.findall(r"^held-out accuracy: ([\d.]+) %", output, re.MULTILINE)
        trainings = 1 if "training in Python is left out" in output else 2
        if len(accuracies) != trainings or min(map(float, accuracies)) < 25:
            failures.append(f"{name}: held-out accuracies are {accuracies}, expected {trainings} of 25 or more")

    expect_accuracy("own", quickstart("own"))
    expect_accuracy("again", quickstart("own"))
    pictures = scratch / "own" / "pictures"
    expect_accuracy("splits", quickstart("splits", pictures))
    expect_accuracy("classes", quickstart("classes", pictures / "train"))
    output = quickstart("unlabelled", pictures / "train" / "circle")
    if "training is left out" not in output:
        failures.append("unlabelled: did not say that training is left out")

    for failure in failures:
        print("FAIL", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
