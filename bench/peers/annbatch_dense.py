#!/usr/bin/env python3
"""annbatch: its batches are CSR matrices, made dense by SciPy as its documentation proposes.

Tried are the matrix in memory, and the collection that it packs (Zarr, shuffled, by default compressed with LZ4; and
not compressed), read by zarrs with three pairs of rows in a run and runs ahead. It needs Python 3.12.
"""

import functools
import os
import warnings

import anndata
import annbatch
import numpy as np
import zarr

import dense_rows
import rounds


class Loader:
    def __init__(self, add_to, batch_size, run, ahead):
        self.loader = add_to(annbatch.Loader(batch_size=batch_size, chunk_size=run, preload_nchunks=ahead, shuffle=True,
                                             preload_to_gpu=False, rng=np.random.default_rng(7)))

    def __iter__(self):
        for batch in self.loader:
            yield batch["X"].toarray(), batch["obs"]["row"].to_numpy()


def collection(options, cells, suffix, **how):
    def write(folder):
        cells.write_h5ad(os.path.join(folder, "cells.h5ad"))
        packed = annbatch.DatasetCollection(os.path.join(folder, "cells.zarr"))
        packed.add_adatas([os.path.join(folder, "cells.h5ad")], rng=np.random.default_rng(7), **how)

    folder = rounds.packed(options, suffix, write)
    return lambda loader: loader.use_collection(annbatch.DatasetCollection(os.path.join(folder, "cells.zarr")))


def main():
    options = rounds.parse_options(__doc__)
    warnings.filterwarnings("ignore")
    zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "threading.max_workers": options.threads})
    cells = anndata.AnnData(dense_rows.load_matrix(options.file))
    cells.obs["row"] = np.arange(cells.n_obs)
    sources = {
        "in memory": lambda loader: loader.add_adata(cells),
        "Zarr, LZ4": collection(options, cells, ".annbatch"),
        "Zarr": collection(options, cells, ".annbatch-plain", zarr_compressor=()),
    }
    ways = {
        f"{name}, {ahead} runs of {run}": functools.partial(Loader, add_to, options.batch, run, ahead)
        for name, add_to in sources.items()
        for run, ahead in ((500, 32), (100, 100), (50, 500))
    }
    dense_rows.compete("annbatch", {"annbatch": annbatch.__version__, "anndata": anndata.__version__}, {"batch": options.batch},
                       ways, options)


if __name__ == "__main__":
    main()
