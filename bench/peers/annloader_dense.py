#!/usr/bin/env python3
"""AnnLoader of anndata, on the matrix in memory: its batches have X as a dense tensor.

It has no workers: with them (0.11) its views of one row each cannot be put together. Files that stay on the disk are
slower.
"""

import functools
import warnings

import anndata
import numpy as np
from anndata.experimental import AnnLoader

import dense_rows
import rounds


class Loader:
    def __init__(self, cells, batch_size):
        self.loader = AnnLoader(cells, batch_size=batch_size, shuffle=True)

    def __iter__(self):
        for batch in self.loader:
            yield batch.X, np.asarray(batch.obs["row"])


def main():
    options = rounds.parse_options(__doc__)
    warnings.filterwarnings("ignore")
    cells = anndata.AnnData(dense_rows.load_matrix(options.file))
    cells.obs["row"] = np.arange(cells.n_obs)
    dense_rows.compete("AnnLoader", {"anndata": anndata.__version__}, {"batch": options.batch},
                       {"no workers": functools.partial(Loader, cells, options.batch)}, options)


if __name__ == "__main__":
    main()
