"""Files of a web server: the same arrays as from a disk."""

from __future__ import annotations

import pickle
import subprocess

import h5py
import numpy as np
import pytest

import chunkio
from file_server import FileServer

pytestmark = pytest.mark.filterwarnings("ignore:more than")


@pytest.fixture
def served(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("images", data=np.random.default_rng(0).integers(0, 255, (500, 32, 32, 3), np.uint8),
                            chunks=(50, 32, 32, 3))
        file["labels"] = np.arange(500) % 7
    with FileServer(tmp_path) as server:
        yield tmp_path / "a.h5", f"{server.url}/a.h5"


def all_batches(path):
    loader = chunkio.Loader(chunkio.Dataset(path), batch_size=32, seed=3)
    return [(np.array(batch.images), np.array(batch.labels), np.array(batch.sample_ids)) for batch in loader]


def test_batches_and_slices(served):
    path, url = served
    for here, there in zip(all_batches(path), all_batches(url)):
        for one, other in zip(here, there):
            np.testing.assert_array_equal(one, other)
    data = chunkio.Dataset(url)
    assert data.info["file"] == url
    with h5py.File(path) as file:
        np.testing.assert_array_equal(data[100:200][0], file["images"][100:200])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(data))[7][0], data[7][0])


def test_state_goes_on_from_a_copy(served):
    """What a run on a disk began, another one goes on with from a store."""
    path, url = served
    loader = chunkio.Loader(chunkio.Dataset(path), batch_size=32, seed=3)
    batches = iter(loader)
    seen = [np.array(next(batches).sample_ids) for _ in range(5)]
    again = chunkio.Loader(chunkio.Dataset(url), batch_size=32, seed=3)
    again.load_state_dict(loader.state_dict())
    seen += [np.array(batch.sample_ids) for batch in again]
    np.testing.assert_array_equal(np.concatenate(seen), np.concatenate([ids for _, _, ids in all_batches(path)]))


def test_what_came_is_kept(served, tmp_path):
    path, url = served
    server_loader = chunkio.Loader(chunkio.Dataset(url, remote_cache=tmp_path / "kept"), batch_size=32, seed=3)
    for _ in range(2):
        ids = np.concatenate([np.array(batch.sample_ids) for batch in server_loader])
        np.testing.assert_array_equal(np.sort(ids), np.arange(500))
    kept, = (tmp_path / "kept").iterdir()
    assert kept.stat().st_blocks * 512 >= 500 * 32 * 32 * 3


def test_an_index_opens_it(served, request, tmp_path):
    h5pack = request.config.getoption("--h5pack")
    if not h5pack:
        pytest.skip("h5pack was not built")
    path, url = served
    subprocess.run([h5pack, "index", url, "-o", tmp_path / "a.index"], check=True)
    data = chunkio.Dataset(url, remote_index=tmp_path / "a.index")
    with h5py.File(path) as file:
        np.testing.assert_array_equal(data[100:200][0], file["images"][100:200])
    with pytest.raises(FileNotFoundError, match="none.index"):
        chunkio.Dataset(url, remote_index=tmp_path / "none.index")


def test_errors(served):
    _, url = served
    with pytest.raises(ValueError, match="remote_cache_bytes"):
        chunkio.Dataset(url, remote_cache_bytes=-1)
    with pytest.raises(FileNotFoundError, match="404"):
        chunkio.Dataset(url.replace("a.h5", "none.h5"))
    with pytest.raises(ValueError, match="remote_requests must be 1 to 1024"):
        chunkio.Dataset(url, remote_requests=0)
    with pytest.raises(ValueError, match="remote_timeout"):
        chunkio.Dataset(url, remote_timeout=0)
