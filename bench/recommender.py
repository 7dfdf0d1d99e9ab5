#!/usr/bin/env python3
"""An epoch of the recommender of samples/python/train_vae.py, fed by chunkio and in the two ways that people write.

    python bench/recommender.py RATINGS.h5ad [--rounds 3] [--step-ms 20] [--json OUT]
    python bench/recommender.py RATINGS.h5ad --held-out OTHERS.h5ad [--rounds 5]

Compared are `csr[rows].toarray()` in the loop, and a DataLoader of single rows as it is by default. Epochs alternate;
the first batch of each way is compared with the matrix before. With --step-ms the thread sleeps that long for each
batch in place of the network, as one waits for a GPU; without, the network is trained on the CPU. The stall is the
time in which neither happens.

With --held-out nothing is timed: the network is trained by chunkio and by `csr[rows].toarray()`, each time from the same
weights, and NDCG@100 of the other users is compared, a seed a round.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import numpy as np
import torch

import chunkio.torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "peers"), str(HERE.parent / "samples" / "python")]

import dense_rows  # noqa: E402
import scipy_dense  # noqa: E402
import train_vae  # noqa: E402


def by_chunkio(loader):
    """The next epoch of a loader, which a trainer makes once."""
    for x, _, ids in loader:
        yield x, ids


class Rows(torch.utils.data.Dataset):
    def __init__(self, matrix):
        self.matrix = matrix

    def __len__(self):
        return self.matrix.shape[0]

    def __getitem__(self, row):
        return torch.from_numpy(self.matrix[row].toarray()[0]), row


def by_rows(matrix, batch):
    yield from torch.utils.data.DataLoader(Rows(matrix), batch_size=batch, shuffle=True)


def spread(values):
    return f"{statistics.median(values):.4g} ({min(values):.4g} to {max(values):.4g})"


def make_step(columns, step_ms):
    """What is done with a batch."""
    if step_ms is not None:
        return lambda x: time.sleep(step_ms / 1e3)
    return training(columns, 7)[1]


def training(columns, seed):
    """A new network, and what trains it with a batch."""
    torch.manual_seed(seed)
    model = train_vae.Autoencoder(columns)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(x):
        scores, divergence = model(x)
        loss = -(torch.log_softmax(scores, 1) * x).sum(1).mean() + train_vae.KL_WEIGHT * divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return model, step


def compare_ndcg(ways, columns, held_out, rounds):
    """Prints NDCG@100 of each way, and the difference from seed to seed."""
    others = chunkio.Dataset(held_out)
    found = {name: [] for name in ways}
    for seed in range(rounds):
        for name, make in ways.items():
            model, step = training(columns, seed)
            for _ in range(train_vae.EPOCHS):
                model.train()
                for x, _ in make():
                    step(x)
            found[name].append(train_vae.ndcg(model, others))
    for name, values in found.items():
        print(f"{name}: NDCG@100 {spread(values)} of {len(others)} users")
    ours, theirs = found.values()
    print(f"difference: {spread([a - b for a, b in zip(ours, theirs)])}")


def epoch(batches, step, matrix, limit):
    """Seconds, and which share of them was no step."""
    rows, busy, start = 0, 0.0, time.perf_counter()
    for x, ids in batches:
        before = time.perf_counter()
        step(x)
        busy += time.perf_counter() - before
        rows += len(ids)
        if limit and rows >= limit:
            break
    seconds = time.perf_counter() - start
    assert rows == matrix.shape[0] or limit
    return {"rows_per_second": rows / seconds, "stall": 1 - busy / seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=0, help="end each epoch after about so many; 0: whole ones")
    parser.add_argument("--step-ms", type=float)
    parser.add_argument("--held-out")
    parser.add_argument("--json")
    options = parser.parse_args()

    matrix = dense_rows.load_matrix(options.file)
    matrix.data[:] = 1  # as Densifier(binary=True)
    loader = chunkio.torch.DataLoader(options.file, options.batch, seed=7, binary=True, sample_ids=True)
    ways = {"chunkio": lambda: by_chunkio(loader),
            "csr[rows].toarray()": lambda: scipy_dense.Loop(scipy_dense.Batches(matrix), options.batch),
            "DataLoader of rows": lambda: by_rows(matrix, options.batch)}
    for name, make in ways.items():
        x, ids = next(iter(make()))
        assert np.array_equal(x.numpy(), matrix[np.asarray(ids)].toarray()), name
    if options.held_out:
        del ways["DataLoader of rows"]
        compare_ndcg(ways, matrix.shape[1], options.held_out, options.rounds)
        return
    step = make_step(matrix.shape[1], options.step_ms)
    found = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, make in ways.items():
            found[name].append(epoch(make(), step, matrix, options.rows))

    report = {"shape": list(matrix.shape), "values": int(matrix.nnz), "step_ms": options.step_ms, "ways": found}
    for name, epochs in found.items():
        line = f"{name}: {spread([e['rows_per_second'] for e in epochs])} users/s, stall {spread([e['stall'] for e in epochs])}"
        if name != "chunkio":
            ratios = [ours["rows_per_second"] / theirs["rows_per_second"] for ours, theirs in zip(found["chunkio"], epochs)]
            line += f"; chunkio / this {spread(ratios)}"
        print(line)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report, file)


if __name__ == "__main__":
    main()
