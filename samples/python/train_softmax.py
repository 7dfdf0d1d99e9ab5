"""Trains a softmax regression with NumPy from the batches of a chunkio.Loader: the smallest complete trainer.

    python train_softmax.py TRAIN.h5 [TEST.h5]

Held-out images come from TEST.h5, or are every fifth row of TRAIN.h5, which are then not trained on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

import chunkio

CELLS, EPOCHS, RATE = 16, 10, 10.0


def features(images: npt.NDArray[np.uint8], mean: list[float], std: list[float]) -> npt.NDArray[np.float32]:
    """uint8 [B,H,W,C] -> [B,F]: averages of at most 16 x 16 cells, normalised."""
    height, width = images.shape[1:3]
    rows, columns = (np.arange(min(size, CELLS)) * size // min(size, CELLS) for size in (height, width))
    sums = np.add.reduceat(np.add.reduceat(images, rows, axis=1, dtype=np.int64), columns, axis=2)
    areas = np.outer(np.diff(rows, append=height), np.diff(columns, append=width))
    cells = (sums / (255.0 * areas[..., None]) - mean) / std
    return np.asarray(cells.reshape(len(images), -1) / np.sqrt(cells[0].size), np.float32)


def main(train_path: str, test_path: str | None = None) -> None:
    data = chunkio.Dataset(train_path)
    test = chunkio.Dataset(test_path or train_path)
    held_out = np.arange(len(data)) % 5 == 0
    loader = chunkio.Loader(data, batch_size=64, rows=None if test_path else ~held_out)
    tester = chunkio.Loader(test, order="sequential", rows=None if test_path else held_out)
    mean, std = data.mean or [0.5], data.std or [0.25]

    def batches(source: chunkio.Loader) -> Iterator[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]:
        for images, labels in source:
            x = features(np.asarray(images), mean, std)
            yield np.pad(x, ((0, 0), (0, 1)), constant_values=1), np.asarray(labels)

    model = np.zeros((features(data[0:1][0], mean, std).size + 1, len(data.class_names)), np.float32)
    for epoch in range(EPOCHS):
        loss = 0.0
        for x, y in batches(loader):
            scores = x @ model
            chances = np.exp(scores - scores.max(axis=1, keepdims=True))
            chances /= chances.sum(axis=1, keepdims=True)
            loss -= float(np.log(chances[np.arange(len(y)), y]).sum())
            chances[np.arange(len(y)), y] -= 1
            model -= RATE / len(y) * (x.T @ chances)
        print(f"epoch {epoch}: loss {loss / loader.samples_per_epoch:.4f}")
    right = sum(int((np.argmax(x @ model, axis=1) == y).sum()) for x, y in batches(tester))
    print(f"held-out accuracy: {100 * right / tester.samples_per_epoch:.1f} %")


if __name__ == "__main__":
    main(*sys.argv[1:])
