"""What peers share that make rows of a sparse matrix dense: float32 [B, columns], and row numbers [B].

The file has the matrix as AnnData stores one, as group X.
"""

import functools

import h5py
import numpy as np
import scipy.sparse

import rounds


def load_matrix(path):
    """scipy.sparse.csr_matrix, in memory."""
    with h5py.File(path, "r") as file:
        matrix = file["X"]
        return scipy.sparse.csr_matrix((matrix["data"][:], matrix["indices"][:], matrix["indptr"][:]),
                                       shape=tuple(matrix.attrs["shape"]))


def check_epoch(batches, matrix, what):
    """Ends the program unless every row comes once, as it is, and shuffled."""
    seen = np.zeros(matrix.shape[0], dtype=bool)
    in_file_order = True
    previous = -1
    for dense, rows in batches:
        dense, rows = np.asarray(dense), np.asarray(rows).reshape(-1)
        if dense.dtype != np.float32 or dense.shape != (len(rows), matrix.shape[1]):
            raise SystemExit(f"{what} delivered {dense.dtype} {dense.shape}")
        if len(np.unique(rows)) != len(rows) or seen[rows].any():
            raise SystemExit(f"{what} delivered a row twice")
        seen[rows] = True
        if not np.array_equal(dense, matrix[rows].toarray()):
            raise SystemExit(f"{what} delivered wrong values")
        in_file_order &= bool((np.diff(rows, prepend=previous) == 1).all())
        previous = rows[-1]
    if not seen.all():
        raise SystemExit(f"{what} left out rows")
    if in_file_order:
        raise SystemExit(f"{what} did not shuffle")


compete = functools.partial(rounds.compete, check=check_epoch, load=load_matrix)
