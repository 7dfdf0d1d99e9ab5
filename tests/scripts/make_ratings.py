"""Ratings that can be learned: users like items of two of 20 kinds."""

import h5py
import numpy as np

ITEMS, KINDS = 400, 20


def ratings(path, users, seed):
    """Writes a matrix of users and items as AnnData does. Returns the path."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(users):
        liked = random.choice(KINDS, 2, replace=False)
        rows.append(np.flatnonzero((random.random(ITEMS) < 0.6) & np.isin(np.arange(ITEMS) % KINDS, liked)))
    with h5py.File(path, "w") as file:
        matrix = file.create_group("X")
        matrix.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": (users, ITEMS)})
        matrix["indptr"] = np.cumsum([0] + [len(row) for row in rows])
        matrix["indices"] = np.concatenate(rows).astype(np.int32)
        matrix["data"] = np.ones(len(matrix["indices"]), np.float32)
    return str(path)
