#!/usr/bin/env python3
"""MosaicML Streaming on the same images, written once to MDS shards without compression.

Tried are 0, 1 and 2 workers, each with its own shuffled order (py1e) and with random access to
whole batches. The fastest is timed.

On two busy CPUs, images/s (CelebA-sized, CIFAR-sized): its own order 3,200, 5,300 without workers
and 2,100, 8,900 with two; random access 5,300, 25,500 and 3,900, 30,200. A shard file is opened for
each sample, whatever the settings.
"""

import functools
import importlib.metadata

import h5py
import streaming
import torch

import rounds
import stacking

# 0 comes last: forked workers would lack the threads that the dataset then has in this process.
WORKERS = (2, 1, 0)
SHARD_BYTES = 64 << 20


class RandomAccess(torch.utils.data.Dataset):
    """Maps row numbers to their samples."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, rows):
        return self.dataset[rows]


def write_shards(options, folder):
    with h5py.File(options.file, "r") as file:
        shape = ",".join(str(axis) for axis in file["images"].shape[1:])
        columns = {"image": f"ndarray:uint8:{shape}", "label": "int64"}
        with streaming.MDSWriter(out=folder, columns=columns, size_limit=SHARD_BYTES) as writer:
            for row, image in rounds.rows_of(file["images"]):
                writer.write({"image": image, "label": row})


def main():
    options = rounds.parse_options(__doc__)
    collate = functools.partial(stacking.stack_samples, shape=rounds.image_shape(options.file))
    folder = rounds.packed(options, ".mds", functools.partial(write_shards, options))
    streaming.base.util.clean_stale_shared_memory()
    dataset = streaming.StreamingDataset(local=folder, shuffle=True, batch_size=options.batch)

    def in_its_order(workers):
        return streaming.StreamingDataLoader(
            dataset, batch_size=options.batch, collate_fn=collate, num_workers=workers,
            persistent_workers=workers > 0)

    def by_random_access(workers):
        samples = RandomAccess(dataset)
        sampler = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(samples),
                                                options.batch, drop_last=False)
        return torch.utils.data.DataLoader(
            samples, batch_size=None, sampler=sampler, collate_fn=collate, num_workers=workers,
            persistent_workers=workers > 0)

    ways = {f"{name}, {workers} workers": functools.partial(make, workers) for workers in WORKERS
            for name, make in (("py1e", in_its_order), ("random access", by_random_access))}
    rounds.compete("MosaicML Streaming",
                   {"mosaicml-streaming": importlib.metadata.version("mosaicml-streaming"),
                    "torch": torch.__version__},
                   {"shard_bytes": SHARD_BYTES, "batch": options.batch}, ways, options)


if __name__ == "__main__":
    main()
