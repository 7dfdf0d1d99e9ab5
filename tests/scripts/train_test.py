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
    failures = []

    def expect(truth, what):
        print("ok  " if truth else "FAIL", what)
        if not truth:
            failures.append(what)

    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        run(make_pictures, scratch / "pictures", "--count", COUNT, "--size", "32x32")
        run(h5pack, "folder", scratch / "pictures", "-o", scratch / "packed")
        files = [scratch / "packed" / "train.h5", scratch / "packed" / "test.h5"]
        run(h5pack, "folder", scratch / "pictures" / "train", "-o", scratch / "one.h5")

        chance = 1 / CLASSES
        accuracy, tested = held_out_accuracy(train_softmax, *files)
        expect(tested == COUNT // 5, f"{tested} held-out images")
        expect(accuracy > 2.5 * chance, f"true labels: {accuracy:.3f} > {2.5 * chance:.3f}")

        accuracy, tested = held_out_accuracy(train_softmax, scratch / "one.h5")
        expect(tested == COUNT * 4 // 5 // 5, f"{tested} held-out images of one file")
        expect(accuracy > 2.5 * chance, f"true labels, one file: {accuracy:.3f} > {2.5 * chance:.3f}")

        # Held-out labels are dealt at random and balanced, so whatever the classifier says, each prediction is
        # right with probability 1/CLASSES, and the number right has at most the binomial variance times
        # n/(n-1). Four standard deviations; the seeds are fixed, so this does not fail by chance.
        for seed in (1, 2):
            accuracy, tested = held_out_accuracy(train_softmax, *files, "--shuffle-labels", "--seed", seed)
            bound = 4 * math.sqrt(chance * (1 - chance) / (tested - 1))
            expect(abs(accuracy - chance) < bound,
                   f"shuffled labels, seed {seed}: |{accuracy:.3f} - {chance}| < {bound:.3f}")
            expect(chance + bound < 2.5 * chance, "the bounds are apart")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
