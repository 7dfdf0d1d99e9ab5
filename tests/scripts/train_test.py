"""The whole path on drawn images: draw, pack, train. With true labels the classifier learns; with labels
dealt at random it cannot.

    train_test.py MAKE_PICTURES H5PACK TRAIN_SOFTMAX
"""

import math
import pathlib
import re
import subprocess
import sys
import tempfile

COUNT = 800
CLASSES = 10


def run(*command):
    print("+", *command, flush=True)
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    print(result.stdout, result.stderr, sep="", flush=True)
    if result.returncode != 0:
        sys.exit(f"exit code {result.returncode}")
    return result.stdout


def held_out_accuracy(*command):
    """(fraction right, images tested) of the last line of the trainer."""
    match = re.search(r"^held-out accuracy: .* \((\d+) of (\d+) images", run(*command), re.MULTILINE)
    correct, tested = int(match[1]), int(match[2])
    return correct / tested, tested


def main():
    make_pictures, h5pack, train_softmax = sys.argv[1:]
    chance = 1 / CLASSES
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        run(make_pictures, scratch / "pictures", "--count", COUNT, "--size", "32x32")
        run(h5pack, "folder", scratch / "pictures", "-o", scratch / "packed")
        files = [scratch / "packed" / "train.h5", scratch / "packed" / "test.h5"]
        run(h5pack, "folder", scratch / "pictures" / "train", "-o", scratch / "one.h5")

        # A fifth is held out, of all images or of one file.
        for trained_on, count in ((files, COUNT), ([scratch / "one.h5"], COUNT * 4 // 5)):
            accuracy, tested = held_out_accuracy(train_softmax, *trained_on)
            assert tested == count // 5 and accuracy > 2.5 * chance, (accuracy, tested)

        # Held-out labels are dealt at random and balanced, so whatever the classifier says, each prediction is
        # right with probability 1/CLASSES, and the number right has at most the binomial variance times
        # n/(n-1). Four standard deviations; the seeds are fixed, so this does not fail by chance.
        for seed in (1, 2):
            accuracy, tested = held_out_accuracy(train_softmax, *files, "--shuffle-labels", "--seed", seed)
            bound = 4 * math.sqrt(chance * (1 - chance) / (tested - 1))
            assert abs(accuracy - chance) < bound < 1.5 * chance, (accuracy, bound)


if __name__ == "__main__":
    main()
