"""The loop with NumPy alone: uint8 batches without a copy, normalised ones, and a stop that is gone on from.

    python numpy_loop.py TRAIN.h5
"""

from __future__ import annotations

import sys

import numpy as np

import chunkio


def main(path: str) -> None:
    data = chunkio.Dataset(path)
    print(f"{len(data)} images of {data.shape[1:]} in {len(data.class_names)} classes")
    image, label = data[0]  # one sample, as a copy
    print(f"row 0 is a {data.class_names[label]}, of brightness {image.mean():.0f}")

    loader = chunkio.Loader(data, batch_size=128, seed=7)
    sums, squares = np.zeros(data.shape[-1]), np.zeros(data.shape[-1])
    for images, labels in loader:  # epoch 0
        pixels = np.asarray(images) / 255  # np.asarray sees the memory of the batch itself: do not write to it
        sums += pixels.mean(axis=(1, 2)).sum(axis=0)
        squares += (pixels**2).mean(axis=(1, 2)).sum(axis=0)
    mean = sums / len(data)
    print("mean", mean.round(4), "std", np.sqrt(squares / len(data) - mean**2).round(4))

    normalizer = chunkio.Normalizer(data, padding=4, random_crop=True, flip=True, seed=7)
    rows: list[int] = []
    for step, batch in enumerate(loader):  # epoch 1
        x = np.asarray(normalizer(batch))  # float32 [B,C,H,W]
        rows += np.asarray(batch.sample_ids).tolist()
        if step == 2:
            print(f"stopped after {len(rows)} images, of mean {x.mean():.2f} and std {x.std():.2f}")
            break
    state = loader.state_dict()  # plain JSON

    again = chunkio.Loader(data, batch_size=128, seed=7)
    again.load_state_dict(state)
    for batch in again:
        rows += np.asarray(batch.sample_ids).tolist()
    print("every image once:", sorted(rows) == list(range(len(data))))
    print(f"waited {again.stats()['stall_seconds']:.4f} s for images")


if __name__ == "__main__":
    main(*sys.argv[1:])
