"""Trains a small convolutional network with plain PyTorch, on the CPU or on a GPU.

    python train_plain.py TRAIN.h5 [TEST.h5]
"""

from __future__ import annotations

import sys
import time

import torch
from torch import nn

import chunkio.torch

EPOCHS, BATCH = 4, 64


def network(channels: int, classes: int) -> nn.Module:
    def block(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]

    blocks = [*block(channels, 16), *block(16, 32), *block(32, 64)]
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64 * 16, classes))


@torch.no_grad()
def accuracy(model: nn.Module, loader: chunkio.torch.DataLoader) -> float:
    model.eval()
    return sum(int((model(x).argmax(dim=1) == y).sum()) for x, y in loader) / len(loader.dataset)


def main(train_path: str, test_path: str | None = None) -> None:
    torch.manual_seed(7)
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    train = chunkio.torch.DataLoader(train_path, BATCH, seed=7, device=device, padding=4, random_crop=True)
    data = train.dataset
    # The test images are normalised by the numbers that the network was trained with.
    test = chunkio.torch.DataLoader(test_path or train_path, device=device, mean=data.mean, std=data.std)
    model = network(data.info["channels"], len(data.class_names)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)

    for epoch in range(EPOCHS):
        model.train()
        start, total, seen = time.perf_counter(), torch.zeros((), device=device), 0
        for images, labels in train:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(labels)
            seen += len(labels)
        loss_mean, rate = float(total) / seen, seen / (time.perf_counter() - start)
        stall = train.stats()["stall_seconds"]
        print(f"epoch {epoch}: loss {loss_mean:.3f}, {rate:.0f} images/s, {stall:.3f} s of stall so far")
    print(f"accuracy {100 * accuracy(model, test):.1f} % of {len(test.dataset)} images")


if __name__ == "__main__":
    main(*sys.argv[1:])
