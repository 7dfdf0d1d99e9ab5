"""What other packages make of the same data, where they are installed: anndata, SciPy, torchvision.

EQUAL_CASES says how many random cases each test has (8), EQUAL_SEED which ones; the seed of a failure is in its message.
"""

from __future__ import annotations

import io
import os
import random
import subprocess
import warnings

import numpy as np
import pytest

import chunkio

CASES = int(os.environ.get("EQUAL_CASES", 8))
SEED = int(os.environ.get("EQUAL_SEED") or random.randrange(2**32))
each_case = pytest.mark.parametrize("case", range(CASES))


@pytest.fixture
def h5pack(request):
    program = request.config.getoption("--h5pack")
    if not program:
        pytest.skip("no --h5pack")
    return program


def random_matrix(rng, sparse):
    shape = rng.randrange(1, 300), rng.randrange(1, 200)
    matrix = sparse.random(*shape, density=rng.choice([0.01, 0.1, 0.4]), format="csr", random_state=rng.randrange(2**32))
    matrix[0, 0] = 1  # none without entries
    matrix.data = np.round(matrix.data * 1000) / 8  # exact in float32
    return matrix.astype(rng.choice([np.float32, np.float64]))


def pack(program, source, out, *options):
    subprocess.run([program, "csr", source, "-o", out, "--quiet", *options], check=True)


def equal(got, wanted, about):
    assert got.shape == wanted.shape and (got != wanted).nnz == 0, about


@each_case
def test_scipy_files(tmp_path, h5pack, case):
    """.npz and Matrix Market, packed: SciPy's matrix, in the order in which rows are stored."""
    sparse, mmio = pytest.importorskip("scipy.sparse"), pytest.importorskip("scipy.io")
    rng = random.Random(SEED + case)
    matrix = random_matrix(rng, sparse)
    source = tmp_path / rng.choice(["m.npz", "m.mtx"])
    if source.suffix == ".npz":
        sparse.save_npz(source, rng.choice([matrix.tocsr, matrix.tocsc, matrix.tocoo])(), compressed=rng.random() < 0.5)
    else:
        mmio.mmwrite(source, matrix)
    pack(h5pack, source, tmp_path / "m.h5ad", "--dtype", "float64")
    data = chunkio.Dataset(tmp_path / "m.h5ad")
    order = data.read_field("obs/source_index")
    equal(data[0 : len(data)][0].to_scipy(), matrix[order], f"EQUAL_SEED={SEED} case {case}: {source.name} {matrix!r}")


@each_case
def test_anndata_reads_what_is_packed(tmp_path, h5pack, case):
    anndata, sparse = pytest.importorskip("anndata"), pytest.importorskip("scipy.sparse")
    rng = random.Random(SEED + case)
    matrix = random_matrix(rng, sparse)
    sparse.save_npz(tmp_path / "m.npz", matrix)
    pack(h5pack, tmp_path / "m.npz", tmp_path / "m.h5ad")
    read = anndata.read_h5ad(tmp_path / "m.h5ad")
    about = f"EQUAL_SEED={SEED} case {case}: {matrix!r}"
    order = read.obs["source_index"].to_numpy()
    equal(read.X, matrix[order], about)
    assert read.obs_names.tolist() == [str(row) for row in order], about
    assert read.var_names.tolist() == [str(column) for column in range(matrix.shape[1])], about


@each_case
def test_rows_of_its_files_are_anndatas(tmp_path, h5pack, case):
    """Streamed as they are if they lie by rows, packed if they lie by columns."""
    anndata, sparse = pytest.importorskip("anndata"), pytest.importorskip("scipy.sparse")
    rng = random.Random(SEED + case)
    matrix = random_matrix(rng, sparse)
    by_columns = rng.random() < 0.3
    cells = anndata.AnnData(matrix.tocsc() if by_columns else matrix)
    cells.obs["count"] = np.arange(matrix.shape[0])
    compression = rng.choice([None, "gzip", "lzf"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells.write_h5ad(tmp_path / "m.h5ad", compression=compression)
    path = tmp_path / "m.h5ad"
    if by_columns:
        path = tmp_path / "packed.h5ad"
        pack(h5pack, tmp_path / "m.h5ad", path, "--order", "source")
    data = chunkio.Dataset(path)
    about = f"EQUAL_SEED={SEED} case {case}: {matrix!r}, by columns {by_columns}, {compression}"
    equal(data[0 : len(data)][0].to_scipy(), matrix, about)
    seen = 0
    for batch in chunkio.Loader(data, batch_size=rng.choice([1, 32, 500]), seed=case):
        equal(batch.leading.to_scipy(), matrix[np.asarray(batch.sample_ids)], about)
        seen += batch.size
    assert seen == matrix.shape[0], about
    if not by_columns:
        assert data.read_field("obs/count").tolist() == cells.obs["count"].tolist(), about


@each_case
def test_crops_are_torchvisions(tmp_path, case):
    v2 = pytest.importorskip("torchvision.transforms.v2")
    image_of = pytest.importorskip("PIL.Image").open
    from decode_test import RANGES, random_box
    from make_encoded_file import encoded, write

    rng = random.Random(SEED + case)
    rows, epoch = 40, rng.randrange(5)
    write(tmp_path / "images.h5", rows)
    size, seed = (rng.randrange(1, 90), rng.randrange(1, 90)), rng.randrange(2**64)
    crop = rng.choice(["center", "random_resized"])
    data = chunkio.Dataset(tmp_path / "images.h5", decode=chunkio.Decode(size, crop=crop))
    loader = chunkio.Loader(data, batch_size=16, seed=seed)
    loader.set_epoch(epoch)
    shorter = (max(size) * 8 + 6) // 7
    for batch in loader:
        for image, row in zip(np.asarray(batch.images), np.asarray(batch.sample_ids).tolist()):
            with image_of(io.BytesIO(encoded(row)[0])) as opened:
                picture = opened.convert("RGB")
            if crop == "center":
                wanted = v2.functional.center_crop(v2.functional.resize(picture, [shorter]), list(size))
            else:
                box = random_box(picture.height, picture.width, seed, epoch, row)
                wanted = v2.functional.resized_crop(picture, *box, list(size))
            about = f"EQUAL_SEED={SEED} case {case}: row {row} {picture.size} {crop} to {size}, {RANGES}"
            np.testing.assert_array_equal(image, np.asarray(wanted), about)
