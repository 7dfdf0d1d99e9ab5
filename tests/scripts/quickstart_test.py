"""Runs the quick start on its own images and on folders as people have them.

    quickstart_test.py QUICKSTART_SH SCRATCH
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys


SCRIPT, SCRATCH = sys.argv[1], pathlib.Path(sys.argv[2])


def quickstart(name, *arguments):
    """Output of a run whose results lie in SCRATCH/name."""
    print(f"+ quickstart.sh {' '.join(map(str, arguments))}", flush=True)
    result = subprocess.run(["bash", SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False,
                            env={**os.environ, "CHUNKIO_QUICKSTART_OUT": str(SCRATCH / name)})
    print(result.stdout, result.stderr, sep="", flush=True)
    assert result.returncode == 0 and (SCRATCH / name / "sheet.png").is_file(), name
    return result.stdout


def expect_accuracy(output):
    accuracies = re.findall(r"^held-out accuracy: ([\d.]+) %", output, re.MULTILINE)
    assert len(accuracies) == (1 if "training in Python is left out" in output else 2), accuracies
    assert min(map(float, accuracies)) >= 25, accuracies


def main():
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    pictures = SCRATCH / "own" / "pictures"
    for arguments in (["own"], ["own"], ["splits", pictures], ["classes", pictures / "train"]):
        expect_accuracy(quickstart(*arguments))
    assert "training is left out" in quickstart("unlabelled", pictures / "train" / "circle")


if __name__ == "__main__":
    main()
