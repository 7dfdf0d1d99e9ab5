"""The samples in samples/python and samples/pack_*.sh run, and what they say is so.

Those marked `long` need a large package or start a cluster; each skips where its package is not installed.
"""

import collections
import importlib.util
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import zlib

import h5py
import numpy as np
import pytest
from make_ratings import ratings

import chunkio

SAMPLES = pathlib.Path(__file__).parent.parent.parent / "samples"
CLASSES = ["bar", "column", "disc", "ring"]
NUM_TRAIN, NUM_TEST, SIDE, EPOCHS, STEPS = 768, 120, 32, 3, 12
# Runs a sample of which every row that a DataLoader for PyTorch delivers is written to a file.
RECORDER = """
import runpy, sys
import chunkio.torch
listing = open(sys.argv[1], "a")
shape = chunkio.torch.DataLoader._shape
def record(self, parts):
    listing.write(" ".join(map(str, parts[3].tolist())) + "\\n")
    return shape(self, parts)
chunkio.torch.DataLoader._shape = record
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def draw(rows):
    """Images of four classes at random places, and their labels."""
    random = np.random.default_rng(rows[0])
    labels = np.asarray(rows) % len(CLASSES)
    images = random.integers(0, 100, (len(rows), SIDE, SIDE, 3))
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    for image, label in zip(images, labels):
        row, column = random.integers(10, SIDE - 10, 2)
        far = np.hypot(y - row, x - column)
        image[[abs(y - row) < 3, abs(x - column) < 3, far < 9, (far > 6) & (far < 10)][label]] += 120
    return images.astype(np.uint8), labels


def write(path, rows):
    images, labels = draw(rows)
    with chunkio.Writer(
        path, num_samples=len(rows), shape=images.shape[1:], class_names=CLASSES, chunk_samples=32,
        fields={"source_index": (np.int64, ())},
    ) as writer:
        writer.append(images, labels, source_index=rows)
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    return write(folder / "train.h5", range(NUM_TRAIN)), write(folder / "test.h5", range(NUM_TRAIN, NUM_TRAIN + NUM_TEST))


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder of class folders with PNG files."""
    return write_photos(tmp_path_factory.mktemp("photos"))


def write_photos(folder):
    for index, (image, label) in enumerate(zip(*draw(range(96)))):
        (folder / CLASSES[label]).mkdir(exist_ok=True, parents=True)
        (folder / CLASSES[label] / f"{index}.png").write_bytes(png(image))
    return folder


def png(image):
    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + row.tobytes() for row in image)
    header = struct.pack(">IIBBBBB", image.shape[1], image.shape[0], 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(lines)) + part(b"IEND", b"")


@pytest.fixture
def run(tmp_path):
    """Runs a command in a folder of its own, and returns what it prints."""

    def command(*words, **variables):
        # One thread each: several processes of PyTorch on few CPUs wait for each other.
        environment = {
            **os.environ, "OMP_NUM_THREADS": "1", "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu", **variables,
        }
        words = [str(word) for word in words]
        if words[0] == "mpirun":  # is not instrumented, and neither is what it starts but h5pack, which needs no help
            environment.pop("LD_PRELOAD", None)
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=800)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "held at once" not in done.stderr, done.stderr
        return done.stdout

    return command


def needs(*packages):
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


def sample(name):
    return str(SAMPLES / "python" / name)


def accuracy(output):
    return float(re.findall(r"accuracy (\S+) %", output)[-1])


def rows_of(listing):
    return [[int(row) for row in line.split()] for line in listing.read_text().splitlines()]


def test_numpy(files, run):
    output = run(sys.executable, sample("numpy_loop.py"), files[0])
    assert "every image once: True" in output
    mean = chunkio.Dataset(files[0]).mean
    np.testing.assert_allclose([float(number) for number in re.search(r"mean \[(.+?)\]", output)[1].split()], mean, atol=1e-4)


def test_plain(files, run):
    needs("torch")
    output = run(sys.executable, sample("train_plain.py"), *files)
    assert accuracy(output) > 60, output
    assert "s of stall" in output


def test_vae(run, tmp_path):
    needs("torch")
    output = run(sys.executable, sample("train_vae.py"), ratings(tmp_path / "train.h5ad", 6000, 1),
                 ratings(tmp_path / "test.h5ad", 300, 2))
    # Ranked by chance it is about 0.1.
    assert float(re.search(r"NDCG@100 (\S+)", output)[1]) > 0.45, output
    assert "waiting for rows" in output


@pytest.mark.parametrize("processes", [1, 4])
def test_ddp_goes_on_with_other_processes(files, run, tmp_path, processes):
    needs("torch")

    def torchrun(count, *options):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", count]
        run(*command, sample("train_ddp.py"), files[0], "--list-samples", tmp_path / "rows", *options)

    def seen():
        return collections.Counter(line for path in tmp_path.glob("rows.*") for line in path.read_text().splitlines())

    torchrun(2, "--steps", 2)
    assert sum(seen().values()) == 2 * 128
    torchrun(processes)
    # Each of two epochs, of which the first was cut in two, has every row once.
    assert seen() == {f"{epoch} {row}": 1 for epoch in range(2) for row in range(NUM_TRAIN)}


@pytest.mark.long
def test_lightning(files, run, tmp_path):
    needs("torch", "lightning")
    command = [sys.executable, "-c", RECORDER]
    whole = run(*command, tmp_path / "whole", sample("train_lightning.py"), files[0])
    assert float(re.findall(r"accuracy (\S+)", whole)[-1]) > 0.6, whole
    rows = rows_of(tmp_path / "whole")
    assert len(rows) == EPOCHS * STEPS
    for step in (10, 20):  # in the first epoch, and in the second
        run(*command, tmp_path / f"rest{step}", sample("train_lightning.py"), files[0], f"checkpoints/step={step}.ckpt")
        assert rows_of(tmp_path / f"rest{step}") == rows[step:]


@pytest.mark.long
@pytest.mark.parametrize("name, package", [("train_accelerate.py", "accelerate"), ("train_transformers.py", "transformers")])
def test_hugging_face(files, run, tmp_path, name, package):
    needs("torch", "accelerate", package)
    command = [sys.executable, "-c", RECORDER]
    run(*command, tmp_path / "whole", sample(name), files[0], tmp_path / "other")
    rows = rows_of(tmp_path / "whole")
    assert len(rows) == EPOCHS * STEPS
    for first in range(0, EPOCHS * STEPS, STEPS):
        assert sorted(sum(rows[first : first + STEPS], [])) == list(range(NUM_TRAIN))
    run(*command, tmp_path / "parts", sample(name), files[0], tmp_path / "folder", 14)
    run(*command, tmp_path / "parts", sample(name), files[0], tmp_path / "folder")
    assert rows_of(tmp_path / "parts") == rows


@pytest.mark.long
def test_jax(files, run):
    needs("jax")
    output = run(sys.executable, sample("train_jax.py"), *files)
    assert accuracy(output) > 60, output


def by_mpi(photos, out, h5pack):
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed")
    mpirun = ["mpirun", "--oversubscribe", "-n", 3, "bash", SAMPLES / "pack_mpi.sh", photos, out]
    return [mpirun, mpirun], {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def by_slurm(photos, out, h5pack):
    """Slurm is not needed: this sets what it sets for the tasks of an array."""
    script = ["bash", SAMPLES / "pack_slurm.sh", photos, out]
    return [["env", f"SLURM_ARRAY_TASK_ID={task}", *script] for task in (2, 0, 1, 1)], {"SLURM_ARRAY_TASK_COUNT": "3"}


def by_ray(photos, out, h5pack):
    needs("ray")
    return [[sys.executable, sample("pack_ray.py"), photos, out, "--shards", 3, "--h5pack", h5pack]], {}


@pytest.mark.parametrize("commands_of", [by_mpi, by_slurm, pytest.param(by_ray, marks=pytest.mark.long)])
def test_packing_scripts_make_what_h5pack_makes_at_once(run, request, photos, tmp_path, commands_of):
    h5pack = request.config.getoption("--h5pack")
    if not h5pack:
        pytest.skip("h5pack was not built")
    folder = tmp_path / "out"
    folder.mkdir()
    commands, variables = commands_of(photos, folder / "train.h5", h5pack)
    for words in commands:
        run(*words, "--chunk", 16, H5PACK=h5pack, **variables)
    run(h5pack, "folder", photos, "-o", folder / "whole.h5", "--chunk", 16)
    whole, parts = chunkio.Dataset(folder / "whole.h5"), chunkio.Dataset(folder / "train-*-of-00003.h5")
    assert len(parts) == 96
    for ours, theirs in zip(parts[:], whole[:]):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("script", ["pack_mpi.sh", "pack_slurm.sh"])
def test_packing_scripts_say_how_they_are_used(script):
    done = subprocess.run(["bash", SAMPLES / script], capture_output=True, text=True)
    assert done.returncode == 2 and script in done.stderr and "set -euo" not in done.stderr
