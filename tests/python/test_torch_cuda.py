"""chunkio.torch on a CUDA device: the same batches as on the CPU. Has the label cuda."""

import gc
import pickle

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
    assert again.state_dict()["epoch"] == 1
    assert again.stats()["loader"]["images"] >= 0 and again.report()


def test_dtype_none_is_refused(on_device):
    with pytest.raises(ValueError, match="dtype cannot be None"):
        on_device(dtype=None)
