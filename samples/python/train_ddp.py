"""Trains with DistributedDataParallel, and goes on from a checkpoint with another number of processes.

    torchrun --nproc-per-node 2 train_ddp.py TRAIN.h5 --steps 10    # stops inside of an epoch
    torchrun --nproc-per-node 4 train_ddp.py TRAIN.h5               # goes on there

The order is cut into four lanes, so 1, 2 or 4 processes deliver the same global batches.
"""

from __future__ import annotations

import argparse
import os

import torch.distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import chunkio.torch

LANES, GLOBAL_BATCH, EPOCHS = 4, 128, 2


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("train")
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--steps", type=int, default=1 << 30, help="stop after so many steps")
    parser.add_argument("--list-samples", metavar="NAME", help="append the row numbers that each rank trained on to NAME.RANK")
    options = parser.parse_args()
    device = f"cuda:{os.environ['LOCAL_RANK']}" if torch.cuda.is_available() else "cpu"
    torch.distributed.init_process_group("gloo" if device == "cpu" else "nccl")
    rank, processes = torch.distributed.get_rank(), torch.distributed.get_world_size()
    data, batch = chunkio.Dataset(options.train), GLOBAL_BATCH // processes
    loader = chunkio.torch.DataLoader(data, batch, seed=7, lanes=LANES, device=device, sample_ids=True)
    net = nn.Sequential(nn.Flatten(), nn.Linear(data[0][0].size, len(data.class_names))).to(device)
    model, optimizer = DistributedDataParallel(net), torch.optim.SGD(net.parameters(), lr=0.001)
    if os.path.exists(options.checkpoint):
        checkpoint = torch.load(options.checkpoint, map_location=device)
        net.load_state_dict(checkpoint["model"])
        loader.load_state_dict(checkpoint["loader"])
    step, seen = 0, []
    while step < options.steps and (epoch := loader.state_dict()["epoch"]) < EPOCHS:
        for images, labels, rows in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += [f"{epoch} {row}\n" for row in rows.tolist()]
            if (step := step + 1) == options.steps:
                break
        print(f"rank {rank} of {processes}, epoch {epoch}, {step} steps: loss {loss.item():.3f}")
    with open(f"{options.list_samples}.{rank}" if options.list_samples else os.devnull, "a") as file:
        file.writelines(seen)
    if rank == 0:  # the state of the loader is equal on all ranks
        torch.save({"model": net.state_dict(), "loader": loader.state_dict()}, options.checkpoint)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
