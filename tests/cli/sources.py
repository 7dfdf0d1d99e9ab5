"""Small copies of public datasets in their original formats, with made-up images."""

import pathlib

import numpy as np

from support import picture, write_picture

CIFAR10_CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def write_cifar10(folder, per_batch=10):
    """The binary version; returns {split: [(label, seed)]}."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    samples = {"train": [], "test": []}
    seed = 0
    for name in names:
        records = []
        for _ in range(per_batch):
            label = (seed * 7) % 10
            records.append(bytes([label]) + picture(seed).transpose(2, 0, 1).tobytes())
            samples["test" if name.startswith("test") else "train"].append((label, seed))
            seed += 1
        (folder / name).write_bytes(b"".join(records))
    (folder / "batches.meta.txt").write_text("\n".join(CIFAR10_CLASSES) + "\n\n")
    return samples


CELEBA_ATTRIBUTES = [f"Attribute_{i}" for i in range(40)]


def write_celeba(folder, count, size=(218, 178), partition=True):
    """The original archive: returns attributes uint8 [N,40], partition, identity and landmarks [N,10]."""
    folder = pathlib.Path(folder)
    images = folder / "img_align_celeba"
    random = np.random.default_rng(count)
    names = [f"{i + 1:06d}.jpg" for i in range(count)]
    for i, name in enumerate(names):
        write_picture(images / name, i, *size)
    attributes = random.integers(0, 2, (count, 40)).astype(np.uint8)
    splits = np.sort(random.integers(0, 3, count))
    splits[0], splits[count // 2], splits[-1] = 0, 1, 2
    splits = np.sort(splits)
    identity = random.integers(1, 10178, count)
    landmarks = random.integers(0, 178, (count, 10))

    # Rows in another order than the files: joining by line number would show.
    rows = random.permutation(count)
    lines = [str(count), " ".join(CELEBA_ATTRIBUTES) + " "]
    for i in rows:
        lines.append(names[i] + " " + " ".join(f"{2 * int(v) - 1:2d}" for v in attributes[i]))
    (folder / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
    if partition:
        (folder / "list_eval_partition.txt").write_text("".join(f"{names[i]} {splits[i]}\n" for i in rows))
    (folder / "identity_CelebA.txt").write_text("".join(f"{names[i]} {identity[i]}\n" for i in rows))
    points = [f"{p}_{axis}" for p in ("lefteye", "righteye", "nose", "leftmouth", "rightmouth") for axis in "xy"]
    (folder / "list_landmarks_align_celeba.txt").write_text(
        f"{count}\n" + " ".join(points) + " \n" +
        "".join(names[i] + "".join(f" {v:3d}" for v in landmarks[i]) + "\n" for i in rows))
    return attributes, splits, identity, landmarks, [str(images / name) for name in names]
