"""What the peers that normalise have in common: the numbers, and the check of what they deliver."""

import numpy as np
import torch

import rounds

# Of value / 255.
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


def check_epoch(batches, reference, what):
    """`batches` yields (float32 [B,C,H,W], row numbers [B]) tensors.

    Pixels may differ by less than half a step of 1/255.
    """
    mean = 255 * torch.tensor(MEAN).reshape(1, -1, 1, 1)
    std = 255 * torch.tensor(STD).reshape(1, -1, 1, 1)

    def stored():
        for images, rows in batches:
            if images.dtype != torch.float32 or not images.is_contiguous():
                raise SystemExit(f"{what} delivered {images.dtype} with strides {images.stride()}")
            pixels = (images * std).add_(mean).round_().to(torch.uint8)
            yield pixels.permute(0, 2, 3, 1).numpy(), np.asarray(rows)

    rounds.check_epoch(stored(), reference, what)
