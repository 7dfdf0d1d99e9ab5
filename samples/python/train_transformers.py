"""Trains with the Trainer of Hugging Face Transformers; its checkpoints hold the place of the loader.

    python train_transformers.py TRAIN.h5 FOLDER [STEPS]     # goes on from the last checkpoint in FOLDER
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from transformers import ResNetConfig, ResNetForImageClassification, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

import chunkio.torch

EPOCHS, BATCH = 3, 64


class SaveLoader(TrainerCallback):
    """Keeps the state of the loader in each checkpoint of the Trainer."""

    def __init__(self, loader: chunkio.torch.DataLoader) -> None:
        self.loader = loader

    def on_save(self, args: TrainingArguments, state: Any, control: Any, **_: Any) -> None:
        with open(f"{args.output_dir}/checkpoint-{state.global_step}/loader.json", "w") as file:
            json.dump(self.loader.state_dict(), file)


class ChunkioTrainer(Trainer):
    loader: chunkio.torch.DataLoader

    def get_train_dataloader(self) -> Any:
        return self.loader


def main(path: str, folder: str, steps: str = "-1") -> None:
    # Made before the loader, which takes ranks from torch.distributed, and goes on by itself: no data is skipped.
    args = TrainingArguments(
        folder, num_train_epochs=EPOCHS, max_steps=int(steps), per_device_train_batch_size=BATCH, learning_rate=0.003,
        save_steps=10, logging_steps=10, report_to=[], disable_tqdm=True, ignore_data_skip=True)
    loader = chunkio.torch.DataLoader(
        path, BATCH, seed=7, flip=True, device=args.device,
        transform=lambda images, labels: {"pixel_values": images, "labels": labels})
    config = ResNetConfig(
        num_channels=loader.dataset.info["channels"], embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1],
        layer_type="basic", num_labels=len(loader.dataset.class_names))
    trainer = ChunkioTrainer(ResNetForImageClassification(config), args, callbacks=[SaveLoader(loader)])
    trainer.loader = loader
    last = get_last_checkpoint(folder) if os.path.isdir(folder) else None
    if last:
        with open(f"{last}/loader.json") as file:
            loader.load_state_dict(json.load(file))
    trainer.train(resume_from_checkpoint=last)


if __name__ == "__main__":
    main(*sys.argv[1:])
