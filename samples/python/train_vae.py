"""Recommends items by a variational autoencoder with multinomial likelihood, trained on rows of a sparse matrix.

    python train_vae.py RATINGS.h5ad [HELD_OUT.h5ad]

RATINGS is a matrix of users and items, as `h5pack csr` writes it; HELD_OUT has other users of the same items. A fifth
of the items of each of these is hidden, and NDCG@100 says how well the network ranks them.

Liang, Krishnan, Hoffman, Jebara: "Variational Autoencoders for Collaborative Filtering", WWW 2018.
"""

from __future__ import annotations

import sys
import time

import torch
from torch import nn
from torch.nn import functional

import chunkio
import chunkio.torch

EPOCHS, BATCH, KL_WEIGHT = 8, 500, 0.2


class Autoencoder(nn.Module):
    def __init__(self, items: int, hidden: int = 600, latent: int = 200) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(items, hidden), nn.Tanh(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, items))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores of all items, and the divergence of the latent code from a standard normal distribution."""
        mean, log_variance = self.encoder(functional.dropout(functional.normalize(x), 0.5, self.training)).chunk(2, 1)
        code = mean + torch.randn_like(mean) * (log_variance / 2).exp() if self.training else mean
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1).mean()
        return self.decoder(code), divergence


@torch.no_grad()
def ndcg(model: Autoencoder, data: chunkio.Dataset, best: int = 100) -> float:
    """The mean over users of the normalised discounted cumulative gain of hidden items among the first `best`."""
    model.eval()
    generator = torch.Generator().manual_seed(7)
    discount = 1 / torch.arange(2, best + 2).log2()
    total, users = 0.0, 0
    for x, _ in chunkio.torch.DataLoader(data, BATCH, binary=True, order="sequential"):
        hidden = (x > 0) & (torch.rand(x.shape, generator=generator) < 0.2)
        scores, _ = model(x.masked_fill(hidden, 0))
        scores[(x > 0) & ~hidden] = -torch.inf  # what they are known to like
        found = hidden.gather(1, scores.topk(best).indices)
        counted = hidden.any(1)
        ideal = discount.cumsum(0)[hidden[counted].sum(1).clamp(max=best) - 1]
        total += float(((found[counted] * discount).sum(1) / ideal).sum())
        users += int(counted.sum())
    return total / users


def main(path: str, held_out: str | None = None) -> None:
    torch.manual_seed(7)
    data = chunkio.Dataset(path)
    model = Autoencoder(data.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = chunkio.torch.DataLoader(data, BATCH, seed=7, binary=True)
    for epoch in range(EPOCHS):
        model.train()
        start, total, waited = time.perf_counter(), 0.0, 0.0
        asked = start
        for x, _ in loader:
            waited += time.perf_counter() - asked
            scores, divergence = model(x)
            loss = -(functional.log_softmax(scores, 1) * x).sum(1).mean() + KL_WEIGHT * divergence
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * len(x)
            asked = time.perf_counter()
        seconds = time.perf_counter() - start
        print(f"epoch {epoch}: loss {total / len(data):.1f}, {len(data) / seconds:.0f} users/s, "
              f"{100 * waited / seconds:.1f} % of it waiting for rows")
    other = chunkio.Dataset(held_out) if held_out else data
    print(f"NDCG@100 {ndcg(model, other):.3f} of {len(other)} users")


if __name__ == "__main__":
    main(*sys.argv[1:])
