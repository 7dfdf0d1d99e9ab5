import gc
import os
import signal
import subprocess
import sys
import textwrap

import h5py
import numpy as np
import pytest
from conftest import images_of, labels_of

import chunkio

ROWS = range(100)


def expect(path, count=100):
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["images"][:], images_of(range(count)))
        np.testing.assert_array_equal(file["labels"][:], labels_of(range(count)))


@pytest.mark.parametrize("block", [1, 7, 9, 10, 100])
@pytest.mark.parametrize("deflate_level", [0, 1])
def test_blocks_of_any_size(tmp_path, block, deflate_level):
    path = tmp_path / "out.h5"
    with chunkio.Writer(path, num_samples=100, shape=(6, 5, 3), chunk_samples=9, class_names=[str(i) for i in range(11)], deflate_level=deflate_level) as writer:
        for first in range(0, 100, block):
            rows = ROWS[first : first + block]
            writer.append(images_of(rows), labels_of(rows))
            assert writer.num_written == rows[-1] + 1
        assert not path.exists()
    expect(path)
    data = chunkio.Dataset(path)
    assert data.class_names[3] == "3" and data.info["format_version"] == 2
    np.testing.assert_allclose(data.mean, (images_of(ROWS) / 255).mean(axis=(0, 1, 2)), atol=1e-6)
    assert [entry["count"] for entry in data.info["classes"]] == np.bincount(labels_of(ROWS), minlength=11).tolist()


def test_single_samples_and_other_libraries(tmp_path):
    with chunkio.Writer(tmp_path / "out.h5", num_samples=100, shape=(6, 5, 3)) as writer:
        for row in range(50):
            writer.append(images_of([row])[0], labels_of([row])[0])
        source = chunkio.Dataset(write_file(tmp_path / "in.h5"))
        batch = next(iter(chunkio.Loader(source, order="sequential", rows=slice(50, 100), batch_size=50)))
        writer.append(batch.images, batch.labels)
    expect(tmp_path / "out.h5")


def write_file(path):
    with chunkio.Writer(path, num_samples=100, shape=(6, 5, 3)) as writer:
        writer.append(images_of(ROWS), labels_of(ROWS))
    return path


def test_fields_and_attributes(tmp_path):
    masks = np.arange(100 * 6, dtype=np.float32).reshape(100, 2, 3)
    table = (np.arange(300).reshape(100, 3) % 2).astype(np.uint8)
    with chunkio.Writer(
        tmp_path / "out.h5", num_samples=100, shape=(3, 6, 5), layout="nchw", attribute_names=["a", "b", "c"],
        fields={"mask": (np.float32, (2, 3))}, split="train",
    ) as writer:  # fmt: skip
        for rows in (slice(0, 33), slice(33, 100)):
            writer.append(images_of(ROWS).transpose(0, 3, 1, 2)[rows], table[rows], mask=masks[rows])
    data = chunkio.Dataset(tmp_path / "out.h5")
    assert data.layout == "nchw" and data.attribute_names == ["a", "b", "c"] and data.info["split"] == "train"
    np.testing.assert_array_equal(data.read_field("mask"), masks)
    np.testing.assert_array_equal(data[0:100][1], table)


def test_what_is_wrong_is_said_and_nothing_is_lost(tmp_path):
    path = tmp_path / "out.h5"
    with chunkio.Writer(path, num_samples=100, shape=(6, 5, 3), chunk_samples=9) as writer:
        for images, labels, text in [
            (images_of(ROWS)[:, 1:], labels_of(ROWS), "images must be uint8"),
            (images_of(ROWS).astype(np.float32), labels_of(ROWS), "float32"),
            (images_of(ROWS), labels_of(ROWS)[1:], "labels must be"),
            (images_of(ROWS), None, "needs labels"),
            (images_of(range(101)), labels_of(range(101)), "more than the 100"),
        ]:
            with pytest.raises(ValueError, match=text):
                writer.append(images, labels)
        writer.append(images_of(ROWS[:40]), labels_of(ROWS[:40]))
        with pytest.raises(ValueError, match="40 of num_samples = 100"):
            writer.close()
        writer.append(images_of(ROWS[40:]), labels_of(ROWS[40:]))
    expect(path)
    with pytest.raises(FileExistsError, match="overwrite") as caught:
        chunkio.Writer(path, num_samples=1, shape=(6, 5, 3))
    assert caught.value.code == "output_exists"
    with pytest.raises(ValueError, match="closed"):
        writer.append(images_of([0]), labels_of([0]))


@pytest.mark.parametrize(
    "error, options, text",
    [
        (ValueError, {"num_samples": 0}, "num_samples must be between 1"),
        (ValueError, {"num_samples": -1}, "num_samples must be between 1"),
        (ValueError, {"num_samples": 2**70}, "num_samples must be between 1"),
        (TypeError, {"num_samples": 2.0}, "integer"),
        (TypeError, {"shape": (6, 5, 3.5)}, "integer"),
        (ValueError, {"shape": (6, 5, 4), "channel_order": "RGB"}, "channel_order RGB does not fit 4"),
        (TypeError, {"class_names": "cat"}, "lists of names"),
        (ValueError, {"fields": {"w": (np.complex64, ())}}, "dtype of field w: there is no 'complex64'"),
    ],
)
def test_odd_options_are_refused(tmp_path, error, options, text):
    with pytest.raises(error, match=text):
        chunkio.Writer(tmp_path / "out.h5", **{"num_samples": 2, "shape": (6, 5, 3), **options})
    assert list(tmp_path.iterdir()) == []


def test_numbers_that_do_not_fit_are_refused(tmp_path):
    with chunkio.Writer(tmp_path / "out.h5", num_samples=2, shape=(6, 5, 3), fields={"w": (np.int32, ())}) as writer:
        for labels, weights, text in [
            (np.array([1, 2**63], np.uint64), [1, 2], "labels: int64 cannot hold"),
            ([1, 2], np.array([1, 2**31]), "w: int32 cannot hold"),
            ([1, 2], [1.5, 2.5], "w must be int32"),
        ]:
            with pytest.raises(ValueError, match=text):
                writer.append(images_of([0, 1]), labels, w=weights)
        writer.append(images_of([0, 1]), np.array([1, 2**63 - 1], np.uint64), w=[-(2**31), 2**31 - 1])
    data = chunkio.Dataset(tmp_path / "out.h5")
    assert data[0:2][1].tolist() == [1, 2**63 - 1] and data.read_field("w").tolist() == [-(2**31), 2**31 - 1]


@pytest.mark.parametrize("channels, order, told", [(1, None, "gray"), (2, None, ""), (3, None, "RGB"), (4, None, ""), (3, "BGR", "BGR"), (4, "RGBA", "RGBA")])
def test_any_number_of_channels(tmp_path, channels, order, told):
    images = np.arange(2 * 30 * channels, dtype=np.uint8).reshape(2, 6, 5, channels)
    with chunkio.Writer(tmp_path / "out.h5", num_samples=2, shape=(6, 5, channels), channel_order=order) as writer:
        writer.append(images, [0, 1])
    data = chunkio.Dataset(tmp_path / "out.h5")
    assert data.info["channel_order"] == told
    np.testing.assert_array_equal(data[:][0], images)


def test_an_exception_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError):
        with chunkio.Writer(tmp_path / "out.h5", num_samples=100, shape=(6, 5, 3)) as writer:
            writer.append(images_of(ROWS[:9]), labels_of(ROWS[:9]))
            raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    writer = chunkio.Writer(tmp_path / "out.h5", num_samples=100, shape=(6, 5, 3))
    del writer
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_is_resumed(tmp_path):
    path = tmp_path / "out.h5"
    program = f"""
        import sys; sys.path[:0] = {[str(p) for p in sys.path]!r}
        import os, signal, chunkio
        from conftest import images_of, labels_of
        writer = chunkio.Writer({str(path)!r}, num_samples=100, shape=(6, 5, 3), chunk_samples=9, resume=True, identity={{"source": "x"}})
        writer.append(images_of(range(50)), labels_of(range(50)))
        writer._writer.commit()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], timeout=60)
    assert done.returncode == -signal.SIGKILL and not path.exists()
    with pytest.raises(ValueError, match="source"):
        chunkio.Writer(path, num_samples=100, shape=(6, 5, 3), chunk_samples=9, resume=True, identity={"source": "y"})
    with chunkio.Writer(path, num_samples=100, shape=(6, 5, 3), chunk_samples=9, resume=True, identity={"source": "x"}) as writer:
        assert writer.num_written == 45
        rows = ROWS[writer.num_written :]
        writer.append(images_of(rows), labels_of(rows))
    expect(path)
    assert os.listdir(tmp_path) == ["out.h5"]


class Indexable:
    classes = ["even", "odd"]

    def __len__(self):
        return 100

    def __getitem__(self, row):
        return images_of([row])[0], row % 2


def test_pack_takes_what_can_be_indexed(tmp_path):
    chunkio.pack(Indexable(), tmp_path / "out.h5", chunk_samples=9)
    data = chunkio.Dataset(tmp_path / "out.h5")
    assert data.class_names == ["even", "odd"]
    images, labels = data[0:100]
    np.testing.assert_array_equal(images, images_of(ROWS))
    np.testing.assert_array_equal(labels, np.arange(100) % 2)


def test_pack_takes_generators_dicts_and_images_alone(tmp_path):
    chunkio.pack(((images_of([row])[0], row % 3) for row in ROWS), tmp_path / "a.h5")
    np.testing.assert_array_equal(chunkio.Dataset(tmp_path / "a.h5")[0:100][1], np.arange(100) % 3)
    chunkio.pack([{"img": images_of([row])[0], "label": row} for row in ROWS], tmp_path / "b.h5", num_samples=60)
    assert len(chunkio.Dataset(tmp_path / "b.h5")) == 60
    chunkio.pack([images_of([row])[0, :, :, 0] for row in ROWS], tmp_path / "c.h5")
    data = chunkio.Dataset(tmp_path / "c.h5")
    assert data.shape == (100, 6, 5, 1) and data[3][1] is None


def test_pack_takes_attributes_and_goes_on(tmp_path):
    tables = np.arange(300).reshape(100, 3) % 2
    samples = [(images_of([row])[0], tables[row]) for row in ROWS]
    asked = []

    class Stops(list):
        def __getitem__(self, row):
            asked.append(row)
            if row == 50 and asked.count(50) == 1:
                raise RuntimeError("stopped")
            return super().__getitem__(row)

    dataset = Stops(samples)
    import chunkio._writer

    chunkio._writer._BLOCK_BYTES = 900  # so that chunks are written before the end
    with pytest.raises(RuntimeError, match="stopped"):
        chunkio.pack(dataset, tmp_path / "out.h5", chunk_samples=9, resume=True, overwrite=False)
    chunkio.pack(dataset, tmp_path / "out.h5", chunk_samples=9, resume=True)
    assert asked.count(10) == 1 and asked.count(60) == 1
    data = chunkio.Dataset(tmp_path / "out.h5")
    assert data.attribute_names == ["0", "1", "2"]
    np.testing.assert_array_equal(data[0:100][0], images_of(ROWS))
    np.testing.assert_array_equal(data[0:100][1], tables)
    with pytest.raises(ValueError, match="99 of num_samples = 100"):
        chunkio.pack(iter(samples[:99]), tmp_path / "few.h5", num_samples=100)
    assert not (tmp_path / "few.h5").exists()


def test_pack_takes_pictures_of_pillow_and_arrays_of_one_class_number(tmp_path):
    image = pytest.importorskip("PIL.Image")
    chunkio.pack([(image.fromarray(images_of([row])[0]), np.array([row])) for row in ROWS], tmp_path / "out.h5")
    images, labels = chunkio.Dataset(tmp_path / "out.h5")[:]
    np.testing.assert_array_equal(images, images_of(ROWS))
    np.testing.assert_array_equal(labels, np.arange(100))


def test_pack_wants_as_many_as_were_asked_for(tmp_path):
    with pytest.raises(ValueError, match="100 of num_samples = 101"):
        chunkio.pack(Indexable(), tmp_path / "out.h5", num_samples=101)
    with pytest.raises(ValueError, match="dict of 'train', 'test'"):
        chunkio.pack({"train": Indexable(), "test": Indexable()}, tmp_path / "out.h5")
    assert list(tmp_path.iterdir()) == []


def test_pack_says_what_it_cannot(tmp_path):
    for samples, text in [
        ([], "no samples"),
        ([(np.zeros((2, 2, 3), np.float32), 1)], "uint8"),
        ([(np.zeros((2, 2, 3), np.uint8), 1), (np.zeros((2, 3, 3), np.uint8), 1)], "image 1 has shape"),
        ([{"text": "x"}], "no 'image'"),
        ([(np.zeros((2, 2, 3), np.uint8), 1.7)], "a label must be"),
        ([(np.zeros((2, 2, 3), np.uint8), "cat")], "a label must be"),
        ([(np.zeros((2, 2, 3), np.uint8), None), (np.zeros((2, 2, 3), np.uint8), 3)], "label of image 1 is 3"),
        ([(np.zeros((2, 2, 3), np.uint8), [0, 1]), (np.zeros((2, 2, 3), np.uint8), [0, 1, 1])], "label of image 1"),
    ]:
        with pytest.raises(ValueError, match=text):
            chunkio.pack(samples, tmp_path / "out.h5")
        with pytest.raises(ValueError, match=text):
            chunkio.pack(iter(samples), tmp_path / "out.h5")
        assert list(tmp_path.iterdir()) == []
