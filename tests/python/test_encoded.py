"""Encoded images, decoded while they are read: against Pillow, of a file that h5py wrote."""

from __future__ import annotations

import io
import os
import pickle

import h5py
import numpy as np
import pytest

import chunkio

PIL = pytest.importorskip("PIL.Image")
from make_encoded_file import encoded, write  # noqa: E402
from resize_reference import resized_channels  # noqa: E402

ROWS = 120


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("encoded") / "images.h5"
    write(path, ROWS)
    return path


def whole(row, size):
    with PIL.open(io.BytesIO(encoded(row)[0])) as image:
        return resized_channels(np.asarray(image.convert("RGB")), size)


def test_what_it_is(path):
    data = chunkio.Dataset(path)
    assert data.encoded and not data.sparse and len(data) == ROWS
    assert data.read_encoded(7) == encoded(7)[0]
    assert data.layout is None
    assert data.info["encoded"]["num_bytes"] == sum(len(encoded(row)[0]) for row in range(ROWS))
    with pytest.raises(chunkio.Error, match="decode"):
        data[0]
    with pytest.raises(chunkio.Error, match="decode"):
        chunkio.Loader(data, batch_size=4)
    with pytest.raises(ValueError, match=str(ROWS)):
        data.read_encoded(ROWS)


def test_samples_are_pillows(path):
    data = chunkio.Dataset(path, decode=chunkio.Decode((24, 31), crop="whole"))
    assert data.shape == (ROWS, 24, 31, 3) and data.layout == "nhwc"
    image, label = data[5]
    np.testing.assert_array_equal(image, whole(5, (24, 31)))
    assert label == 5
    seen = []
    for batch in chunkio.Loader(data, batch_size=16, seed=1):
        for image, row in zip(np.asarray(batch.images), np.asarray(batch.sample_ids)):
            np.testing.assert_array_equal(image, whole(row, (24, 31)))
            seen.append(row)
    assert sorted(seen) == list(range(ROWS))


def test_crops_are_drawn_anew_each_epoch(path):
    data = chunkio.Dataset(path, decode=chunkio.Decode(20, crop="random_resized", scale=(0.3, 1)))
    loader = chunkio.Loader(data, batch_size=ROWS, seed=1)

    def epoch():
        (batch,) = loader
        return np.asarray(batch.images)[np.argsort(np.asarray(batch.sample_ids))].copy()

    first, second = epoch(), epoch()
    assert (first != second).any()
    (batch,) = chunkio.Loader(data, batch_size=ROWS, seed=1)
    np.testing.assert_array_equal(np.asarray(batch.images)[np.argsort(np.asarray(batch.sample_ids))], first)


def test_gray_and_inexact(path):
    gray = chunkio.Dataset(path, decode=chunkio.Decode(16, crop="whole", gray=True))
    assert gray.shape == (ROWS, 16, 16, 1)
    with PIL.open(io.BytesIO(encoded(3)[0])) as image:
        wanted = resized_channels(np.asarray(image.convert("L")), (16, 16))
    np.testing.assert_array_equal(gray[3][0][..., 0], wanted)
    rough = chunkio.Dataset(path, decode=chunkio.Decode(8, crop="whole", exact=False))
    difference = np.abs(rough[3][0].astype(int) - whole(3, (8, 8)))
    assert 0 < difference.max() < 60


def test_normalizer_takes_them(path):
    data = chunkio.Dataset(path, decode=chunkio.Decode(16))
    normalizer = chunkio.Normalizer(data, mean=[0.5] * 3, std=[0.25] * 3)
    batch = next(iter(chunkio.Loader(data, batch_size=8)))
    values = np.asarray(normalizer(batch))
    wanted = (np.asarray(batch.images).transpose(0, 3, 1, 2) / 255 - 0.5) / 0.25
    np.testing.assert_allclose(values, wanted, atol=1e-5)


def test_pickled(path):
    decode = chunkio.Decode(16, crop="random_resized")
    again = pickle.loads(pickle.dumps(chunkio.Dataset(path, decode=decode)))
    assert again.shape == (ROWS, 16, 16, 3)
    assert pickle.loads(pickle.dumps(decode)) == decode


@pytest.mark.parametrize("wrong", [
    {"size": 0}, {"size": 70000}, {"shorter_side": 10}, {"crop": "middle"}, {"crop": "whole", "shorter_side": 300},
    {"crop": "random_resized", "scale": (1, 0.5)}, {"crop": "random_resized", "ratio": (0, 1)},
    {"size": (1,)}, {"size": 5.5}, {"size": True}, {"size": "12"},
])
def test_wrong_options(path, wrong):
    with pytest.raises(ValueError):
        chunkio.Dataset(path, decode=chunkio.Decode(**wrong))


def test_decode_is_a_decode(path):
    with pytest.raises(TypeError, match="chunkio.Decode, got 5"):
        chunkio.Dataset(path, decode=5)


@pytest.mark.parametrize("damage", ["indptr", "sizes", "max_pixels"])
def test_damaged_structure(path, tmp_path, damage):
    copy = tmp_path / "damaged.h5"
    copy.write_bytes(path.read_bytes())
    with h5py.File(copy, "r+") as file:
        group = file["images"]
        if damage == "indptr":
            group["indptr"][50] = 2**40
        elif damage == "sizes":
            del group["sizes"]
        else:
            group.attrs["max_pixels"] = -1
    with pytest.raises(chunkio.Error, match="damaged|max_pixels"):
        data = chunkio.Dataset(copy, decode=chunkio.Decode(8))
        for _ in chunkio.Loader(data, batch_size=4):
            pass


def variants():
    """Each way in which a codec stores pixels, as the bytes of images of 40x56 pixels."""
    random = np.random.default_rng(0)
    smooth = np.add.outer(np.arange(40) * 3, np.arange(56) * 2)[..., None] + random.integers(0, 60, (1, 1, 3))
    rgb = (smooth + random.integers(0, 9, smooth.shape)).clip(0, 255).astype(np.uint8)
    image = PIL.fromarray(rgb)

    def saved(one, format, **options):
        out = io.BytesIO()
        one.save(out, format, **options)
        return out.getvalue()

    yield "jpeg", saved(image, "JPEG")
    yield "jpeg 4:4:4", saved(image, "JPEG", subsampling=0, optimize=True)
    yield "progressive jpeg", saved(image, "JPEG", progressive=True)
    yield "gray jpeg", saved(image.convert("L"), "JPEG")
    yield "cmyk jpeg", saved(image.convert("CMYK"), "JPEG")
    yield "jpeg with restarts", saved(image, "JPEG", restart_marker_rows=1)
    yield "png", saved(image, "PNG")
    yield "palette png", saved(image.quantize(64), "PNG")
    yield "1-bit png", saved(image.convert("1"), "PNG")
    yield "16-bit png", saved(PIL.fromarray(rgb[..., 0].astype(np.uint16) << 7), "PNG")
    yield "png with alpha", saved(image.convert("RGBA"), "PNG")
    yield "webp", saved(image, "WEBP", quality=80)
    yield "lossless webp", saved(image, "WEBP", lossless=True)
    yield "webp with alpha", saved(image.convert("RGBA"), "WEBP", quality=50)


def mutated(data, random):
    """The same with some bytes changed, a part doubled or taken away, or the end cut off."""
    data = bytearray(data)
    for _ in range(random.integers(1, 9)):
        # Headers are short, and most of what they say is worth a lie.
        at = int(random.integers(0, len(data) if random.random() < 0.6 else min(len(data), 700)))
        kind = random.integers(0, 6)
        if kind < 3:
            data[at] ^= 1 << int(random.integers(8))
        elif kind == 3:
            data[at] = int(random.choice([0, 255, 127, 128, 1]))
        elif kind == 4:
            part = data[at:at + int(random.integers(1, 40))]
            data[at:at] = part
        else:
            del data[at:at + int(random.integers(1, 40))]
        if not data:
            data = bytearray(b"\0")
    return bytes(data)


@pytest.mark.parametrize("name, data", list(variants()), ids=[name for name, _ in variants()])
def test_mutated_bytes_of_each_codec(tmp_path, name, data):
    """Images decode, or are skipped and named: no crash, no hang, and no more memory than images of that size take."""
    random = np.random.default_rng(len(data))
    images = [data] + [mutated(data, random) for _ in range(1500)]
    with h5py.File(tmp_path / "mutated.h5", "w") as file:
        group = file.create_group("images")
        group.attrs.update({"encoding-type": "encoded-images", "encoding-version": "1", "max_height": 40,
                            "max_width": 56, "max_pixels": 40 * 56})
        group["data"] = np.frombuffer(b"".join(images), np.uint8)
        group["indptr"] = np.cumsum([0] + [len(image) for image in images])
        group["sizes"] = np.tile(np.int32([40, 56]), (len(images), 1))
    with open("/proc/self/status") as status:
        before = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    for decode in (chunkio.Decode(24, crop="random_resized"), chunkio.Decode(32, crop="whole", exact=False)):
        dataset = chunkio.Dataset(tmp_path / "mutated.h5", decode=decode)
        # The next epoch has other crops, of which others miss what is damaged.
        loader = chunkio.Loader(dataset, batch_size=64, seed=3, on_error="skip", num_threads=2, num_epochs=1)
        seen = {row for batch in loader for row in np.asarray(batch.sample_ids)}
        skipped = {row for one in loader.skipped() for row in range(one["first_row"], one["first_row"] + one["num_rows"])}
        assert 0 in seen and not seen & skipped
        assert seen | skipped == set(range(len(images)))
        assert len(skipped) > 50
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    # AddressSanitizer keeps 256 MiB of what was given back.
    most = (556 if os.environ.get("CHUNKIO_SANITIZE") else 300) << 10
    assert peak - before < most, f"{peak - before} KiB more"
