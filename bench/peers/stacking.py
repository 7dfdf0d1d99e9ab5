"""Stacks the images of a batch, once.

In a worker of PyTorch's DataLoader that is the shared memory in which the batch is handed over.
"""

import math

import numpy as np
import torch


def stack(images, labels, shape):
    """`images` are uint8 arrays of one image each. Returns tensors: [B,H,W,C] uint8, [B] int64."""
    num_bytes = len(images) * math.prod(shape)
    batch = torch.empty(0, dtype=torch.uint8)
    if torch.utils.data.get_worker_info() is not None:
        batch.set_(torch.UntypedStorage._new_shared(num_bytes))  # as default_collate does
    batch.resize_(num_bytes)
    np.concatenate([image.reshape(-1) for image in images], out=batch.numpy())
    return batch.view(len(images), *shape), torch.as_tensor(labels, dtype=torch.int64)


def stack_samples(samples, shape):
    """The same for dictionaries with "image" and "label"."""
    return stack([sample["image"] for sample in samples],
                 [sample["label"] for sample in samples], shape)
