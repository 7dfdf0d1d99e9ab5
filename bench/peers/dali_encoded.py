#!/usr/bin/env python3
"""NVIDIA DALI on the CPU: readers.file, decoders.image_random_crop, resize to 224x224 and flip, uint8 [B,H,W,C].

Of JPEG images it decodes the crop alone. Tried are batches that are made ahead in its queue (prefetch_queue_depth) of 2
and of 4. The fastest is timed.
"""

import functools

import numpy as np
import nvidia.dali
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.base_iterator import LastBatchPolicy

import rounds

SIDE = 224


@pipeline_def
def random_resized_crops(folder):
    encoded, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="files", seed=7)
    images = fn.decoders.image_random_crop(encoded, random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3], seed=7)
    images = fn.resize(images, size=[SIDE, SIDE], interp_type=types.INTERP_LINEAR, antialias=True)
    return fn.flip(images, horizontal=fn.random.coin_flip(seed=7)), labels


def main():
    options = rounds.parse_options(__doc__)

    def make(depth):
        pipeline = random_resized_crops(options.file, batch_size=options.batch, num_threads=options.threads, device_id=None,
                                        prefetch_queue_depth=depth)
        pipeline.build()
        return pipeline

    def images_of(pipeline):
        """An epoch: DALI fills its last batch with images of the next one, which are not counted."""
        count = pipeline.epoch_size("files")
        for first in range(0, count, options.batch):
            pictures, _ = pipeline.run()
            if pictures.dtype != types.UINT8 or tuple(pictures.as_tensor().shape()) != (options.batch, SIDE, SIDE, 3):
                raise SystemExit(f"DALI delivered {pictures.dtype} {pictures.as_tensor().shape()}")
        return count

    kept = {f"depth {depth}": make(depth) for depth in (2, 4)}
    count = next(iter(kept.values())).epoch_size("files")
    best, rates = rounds.fastest({name: functools.partial(images_of, pipeline) for name, pipeline in kept.items()}, count)
    rounds.serve("DALI", {"dali": nvidia.dali.__version__, "numpy": np.__version__},
                 {"num_threads": options.threads, "batch": options.batch}, best, rates,
                 functools.partial(images_of, kept[best]), options)


if __name__ == "__main__":
    main()
