"""Trains with Lightning: the loader is what train_dataloader returns, and checkpoints hold its state.

    python train_lightning.py TRAIN.h5 [CHECKPOINT]     # goes on from CHECKPOINT, where it stood inside of an epoch
"""

from __future__ import annotations

import sys

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn

import chunkio.torch

EPOCHS, BATCH, SAVE_EVERY = 3, 64, 10


class Classifier(lightning.LightningModule):
    def __init__(self, path: str) -> None:
        super().__init__()
        self.data = chunkio.Dataset(path)
        classes = len(self.data.class_names)
        self.net = nn.Sequential(
            nn.LazyConv2d(16, 3, stride=2), nn.ReLU(), nn.LazyConv2d(32, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(32 * 16, classes))
        self.net(torch.zeros(1, self.data.info["channels"], *self.data.shape[1:3]))  # fixes the lazy shapes

    def train_dataloader(self) -> chunkio.torch.DataLoader:
        # Lightning has initialised torch.distributed by now, which says rank and number of processes.
        self.loader = chunkio.torch.DataLoader(self.data, BATCH, seed=7, flip=True)
        return self.loader

    def on_train_epoch_start(self) -> None:
        self.loader.set_epoch(self.current_epoch)  # keeps the place that a checkpoint has inside of this epoch

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], index: int) -> torch.Tensor:
        images, labels = batch
        scores = self.net(images)
        self.log("accuracy", (scores.argmax(dim=1) == labels).float().mean(), on_step=False, on_epoch=True)
        return nn.functional.cross_entropy(scores, labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.003)


def main(path: str, checkpoint: str | None = None) -> None:
    lightning.seed_everything(7, verbose=False)
    # Lightning saves state_dict() of the loader with the model, and gives it back.
    saver = ModelCheckpoint(dirpath="checkpoints", filename="{step}", every_n_train_steps=SAVE_EVERY, save_top_k=-1)
    trainer = lightning.Trainer(max_epochs=EPOCHS, callbacks=[saver], logger=False, enable_progress_bar=False)
    trainer.fit(Classifier(path), ckpt_path=checkpoint)
    print(f"epoch {trainer.current_epoch}, step {trainer.global_step}: accuracy {trainer.callback_metrics['accuracy']:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
