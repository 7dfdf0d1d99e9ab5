"""chunkio.torch on a CUDA device: the same batches as on the CPU. Has the label cuda."""

import gc
import pickle
import shutil

import pytest
from conftest import SAMPLE_BYTES, skip_batches

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("PyTorch sees no CUDA device", allow_module_level=True)
import chunkio.torch  # noqa: E402

OPTIONS = {
    "batch_size": 16, "seed": 7, "window_bytes": 4 * 9 * SAMPLE_BYTES, "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4],
    "padding": 2, "random_crop": True, "flip": True, "fields": ["weights"],
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_thread_is_left():
    """Nothing is counted: CUDA and PyTorch start threads of their own when they please."""


@pytest.fixture(params=["off", "require"])
def on_device(make_file, request):
    path = make_file()

    def make(**options):
        return chunkio.torch.DataLoader(
            path, device="cuda:0", device_options={"resident": request.param}, **{**OPTIONS, **options}
        )

    return make


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_batches_are_those_of_the_cpu(make_file, on_device, dtype, memory_format):
    expected = chunkio.torch.DataLoader(make_file(), dtype=dtype, memory_format=memory_format, **OPTIONS)
    loader = on_device(dtype=dtype, memory_format=memory_format)
    assert len(loader) == len(expected)
    for _ in range(2):
        for (images, labels, fields), (images_cpu, labels_cpu, fields_cpu) in zip(loader, expected):
            assert images.device.type == "cuda" and images.is_contiguous(memory_format=memory_format)
            assert torch.equal(images.cpu(), images_cpu)
            assert torch.equal(labels.cpu(), labels_cpu)
            assert torch.equal(fields["weights"].cpu(), fields_cpu["weights"])


def test_what_is_held_stays(on_device):
    wanted = [images.cpu() for images, _, _ in on_device()]
    loader = on_device()
    held = [images for images, _, _ in loader]
    del loader
    gc.collect()
    assert all(torch.equal(images.cpu(), other) for images, other in zip(held, wanted))


def test_on_another_stream(on_device):
    wanted = [images.cpu() for images, _, _ in on_device()]
    with torch.cuda.stream(torch.cuda.Stream()):
        got = [(images + 0).cpu() for images, _, _ in on_device()]
    assert all(torch.equal(a, b) for a, b in zip(got, wanted))


def test_states_and_pickles(on_device):
    loader = on_device()
    skip_batches(loader, 6)
    state = loader.state_dict()
    rest = [labels.tolist() for _, labels, _ in pickle.loads(pickle.dumps(loader))]
    again = on_device()
    again.load_state_dict(state)
    assert [labels.tolist() for _, labels, _ in again] == rest and len(rest) == 9
    assert again.state_dict()["loader"]["epoch"] == 1
    assert again.stats()["loader"]["images"] >= 0 and again.report()


def test_dtype_none_is_refused(on_device):
    with pytest.raises(ValueError, match="dtype cannot be None"):
        on_device(dtype=None)


def test_echo_and_resizing_are_those_of_the_cpu(make_file, on_device):
    options = {**OPTIONS, "padding": 0, "random_crop": False, "random_resized_crop": True, "crop_size": (4, 7)}
    expected = list(chunkio.torch.DataLoader(make_file(), sample_ids=True, **options))
    got = list(on_device(sample_ids=True, **options))
    assert len(got) == len(expected) > 0
    for one, other in zip(got, expected):
        assert torch.equal(one[0].cpu(), other[0]) and torch.equal(one[3], other[3])
    path = make_file()
    echoed = chunkio.torch.DataLoader(
        path, device="cuda:0", sample_ids=True, device_options={"echo": 3, "echo_buffer_batches": 2}, **OPTIONS
    )
    ids = torch.cat([batch[3] for batch in echoed])
    assert torch.equal(ids.bincount(), torch.full((230,), 3))


def test_rows_of_a_matrix(tmp_path):
    import h5py
    import numpy as np

    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.random(400, 900, 0.02, "csr", np.float32, random_state=3)
    path = tmp_path / "matrix.h5"
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs["encoding-type"] = "csr_matrix"
        group.attrs["encoding-version"] = "0.1.0"
        group.attrs["shape"] = matrix.shape
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(matrix, name)
    dense = torch.from_numpy(matrix.toarray())
    for resident in ("off", "require"):
        loader = chunkio.torch.DataLoader(
            str(path), batch_size=64, seed=3, device="cuda:0", sample_ids=True, device_options={"resident": resident}
        )
        for _ in range(2):
            rows = 0
            for batch in loader:
                assert torch.equal(batch[0].cpu(), dense[batch[-1]])
                rows += len(batch[0])
            assert rows == 400


def test_encoded_images(tmp_path):
    pytest.importorskip("PIL.Image")
    from make_encoded_file import write

    path = tmp_path / "encoded.h5"
    write(path, 60)
    data = chunkio.Dataset(path, decode=chunkio.Decode((24, 31)))
    options = {"batch_size": 8, "seed": 3, "mean": [0.5, 0.4, 0.3], "std": [0.25, 0.2, 0.3]}
    expected = list(chunkio.torch.DataLoader(data, **options))
    loader = list(chunkio.torch.DataLoader(data, device="cuda:0", **options))
    assert len(loader) == len(expected) > 0
    for (images, labels), (images_cpu, labels_cpu) in zip(loader, expected):
        assert torch.equal(images.cpu(), images_cpu) and torch.equal(labels.cpu(), labels_cpu)


def test_a_captured_graph_finds_each_batch_at_its_address(on_device):
    """A graph for each output buffer is all that training needs."""
    wanted = [images.cpu() * 2 for images, _, _ in on_device()]
    out = torch.empty((16, 3, 6, 5), device="cuda")
    graphs = {}
    whole = 0
    for (images, _, _), doubled in zip(on_device(), wanted):
        if len(images) < 16:
            continue
        graph = graphs.get(images.data_ptr())
        if graph is None:
            graph = graphs[images.data_ptr()] = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                torch.mul(images, 2, out=out)
        graph.replay()
        assert torch.equal(out.cpu(), doubled)
        whole += 1
    assert len(graphs) <= 4 and whole == 14


def test_a_compiled_step_takes_batches(on_device):
    if shutil.which("cc") is None:
        pytest.skip("torch.compile needs a C compiler")
    step = torch.compile(lambda images: images.float().mul(2).sum(dim=(1, 2, 3)))
    assert len(on_device()) > 0
    for (images, _, _), (same, _, _) in zip(on_device(), on_device()):
        torch.testing.assert_close(step(images), same.float().mul(2).sum(dim=(1, 2, 3)))


def test_loaders_that_are_dropped_leave_no_memory(on_device):
    def drop(count):
        for index in range(count):
            loader = on_device(batch_size=8 + index % 3)
            for _ in zip(range(index % 5), loader):
                pass
        del loader
        gc.collect()
        torch.cuda.synchronize()

    drop(5)
    before = torch.cuda.mem_get_info()[0]
    drop(50)
    assert torch.cuda.mem_get_info()[0] >= before
