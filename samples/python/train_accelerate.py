"""Trains with Hugging Face Accelerate; its checkpoints hold the place of the loader.

    accelerate launch train_accelerate.py TRAIN.h5 FOLDER [STEPS]     # goes on from FOLDER if there is a checkpoint
"""

from __future__ import annotations

import os
import sys

import torch
from accelerate import Accelerator
from torch import nn

import chunkio.torch

EPOCHS, BATCH = 3, 64


def main(path: str, folder: str, steps: str = "1000000") -> None:
    torch.manual_seed(7)
    accelerator = Accelerator()  # before the loader, which takes rank and number of processes from torch.distributed
    loader = chunkio.torch.DataLoader(path, BATCH, seed=7, flip=True, device=accelerator.device)
    data = loader.dataset
    model = nn.Sequential(
        nn.Conv2d(data.info["channels"], 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(32 * 16, len(data.class_names)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    # The loader comes out as it went in: it is split among the processes already, and puts batches on the device.
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    accelerator.register_for_checkpointing(loader)
    if os.path.isdir(folder):
        accelerator.load_state(folder)

    step, last = 0, int(steps)
    while step < last and (epoch := loader.state_dict()["epoch"]) < EPOCHS:
        right = seen = 0
        for images, labels in loader:
            scores = model(images)
            optimizer.zero_grad()
            accelerator.backward(nn.functional.cross_entropy(scores, labels))
            optimizer.step()
            right += int((scores.argmax(dim=1) == labels).sum())
            seen += len(labels)
            if (step := step + 1) == last:
                break
        accelerator.print(f"epoch {epoch}: accuracy {right / seen:.2f} of {seen} images")
    accelerator.save_state(folder)
    accelerator.end_training()


if __name__ == "__main__":
    main(*sys.argv[1:])
