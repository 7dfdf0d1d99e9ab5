"""chunkio in one process with packages that bring an HDF5 library, a C++ runtime or many threads of their own.

Each case is a process of its own, since what was imported first decides which libraries the others get. Also run on an
installed wheel (build_wheel.sh, the release workflow), where some cases look at its extension, too.
"""

import functools
import importlib.metadata
import importlib.util
import inspect
import os
import subprocess
import sys
import textwrap

import h5py
import pytest
from conftest import CHANNELS, HEIGHT, WIDTH, images_of

import chunkio

# What each package does with the file that chunkio reads and writes: a body of use(path).
USES = {
    "h5py": """
        with h5py.File(path) as file:
            assert np.array_equal(file["images"][:], images_of(range(230)))
    """,
    "tables": """
        with tables.open_file(path) as file:
            assert np.array_equal(file.root.images[:], images_of(range(230)))
    """,
    "torch": """
        import chunkio.torch
        for images, labels in chunkio.torch.DataLoader(path, batch_size=50, dtype=None):
            assert torch.equal(images, torch.from_numpy(images_of(labels)))
        weights = torch.randn(90, 7, requires_grad=True)
        torch.nn.functional.relu(images.reshape(len(images), -1).float() @ weights).sum().backward()
    """,
    "cv2": """
        image = images_of(range(1))[0]
        assert np.array_equal(cv2.imdecode(cv2.imencode(".png", image)[1], cv2.IMREAD_COLOR), image)
        assert cv2.resize(np.tile(image, (50, 50, 1)), (64, 64)).shape == (64, 64, 3)
    """,
}
BOTH_ORDERS = [["chunkio", "h5py"], ["h5py", "chunkio"]]

# The labels of this file are row numbers.
COMMON = f"""
import sys

import numpy as np

HEIGHT, WIDTH, CHANNELS = {HEIGHT}, {WIDTH}, {CHANNELS}


{inspect.getsource(images_of)}

""" + """
def use_chunkio(path, **options):
    loader = chunkio.Loader(chunkio.Dataset(path), batch_size=32, seed=3, **options)
    seen = 0
    for images, labels in loader:
        assert np.array_equal(np.asarray(images), images_of(np.asarray(labels)))
        seen += len(images)
        yield
    assert seen == 230


def write(path):
    with chunkio.Writer(path, num_samples=230, shape=(6, 5, 3), chunk_samples=9, deflate_level=3) as writer:
        writer.append(images_of(range(230)), np.arange(230))


path, other = sys.argv[1:]
"""


@functools.lru_cache(None)
def obstacle(module):
    """Why a package cannot be tried: not there, or made for another NumPy."""
    if importlib.util.find_spec(module) is None:
        return f"{module} is not installed"
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True, timeout=300)
    return f"{module}: {done.stderr.strip().splitlines()[-1]}" if done.returncode else None


def run(tmp_path, modules, program, **environment):
    """Runs the program behind imports in this order. It finds a file at `path`, and none at `other`."""
    for module in modules:
        if module != "chunkio" and (why := obstacle(module)):
            pytest.skip(why)
    path = tmp_path / "rows.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("images", data=images_of(range(230)), chunks=(9, 6, 5, 3), compression="gzip")
        file["labels"] = range(230)
    imports = "".join(f"import {module}\n" for module in modules)
    command = [sys.executable, "-c", imports + COMMON + textwrap.dedent(program), str(path), str(tmp_path / "other.h5")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "HDF5-DIAG" not in done.stderr
    return done.stdout


def uses(modules):
    """use_NAME(path) for each of these packages."""
    return "\n".join(f"def use_{module}(path):{USES[module]}" for module in modules if module != "chunkio")


def bundled():
    """Whether what is tested came from a wheel with its libraries inside."""
    try:
        return "manylinux" in (importlib.metadata.distribution("chunkio").read_text("WHEEL") or "")
    except importlib.metadata.PackageNotFoundError:
        return False


needs_bundle = pytest.mark.skipif(not bundled(), reason="not an installed wheel with its libraries inside")


@needs_bundle
def test_no_library_of_the_system_is_loaded(tmp_path):
    # A loader that looked for one of these would find a file that is no library.
    for name in ("libhdf5.so.310", "libhdf5.so.200", "libhdf5_serial.so.103", "libdeflate.so.0", "libsz.so.2"):
        (tmp_path / name).touch()
    program = """
        for source in "direct", "hdf5":
            for _ in use_chunkio(path, source=source):
                pass
        write(other)
        with open("/proc/self/maps") as maps:
            loaded = {line.split("/")[-1].strip() for line in maps if ".so" in line}
        print(*(name for name in loaded if name.startswith(("libhdf5", "libdeflate", "libsz", "libaec"))))
    """
    assert run(tmp_path, ["chunkio"], program, LD_LIBRARY_PATH=str(tmp_path)).split() == []


@needs_bundle
def test_the_licences_of_what_is_inside_are_there():
    names = {file.name for file in importlib.metadata.files("chunkio") if file.parent.name == "licenses"}
    assert names >= {"LICENSE", "hdf5.txt", "zlib.txt", "libdeflate.txt", "xxhash.txt", "json.txt", "nanobind.txt"}


@pytest.mark.parametrize("first", ["chunkio", "other"])
@pytest.mark.parametrize("module", USES)
def test_two_packages(tmp_path, module, first):
    modules = ["chunkio", module] if first == "chunkio" else [module, "chunkio"]
    program = f"""
        write(other)
        for source in "direct", "hdf5":
            for _ in use_chunkio(path, source=source):
                use_{module}(path)
            use_{module}(other)
            for _ in use_chunkio(other, source=source):
                pass
    """
    run(tmp_path, modules, uses([module]) + textwrap.dedent(program))


@pytest.mark.parametrize("modules", BOTH_ORDERS, ids="-".join)
def test_a_loop_amid_reads_of_h5py(tmp_path, modules):
    # One file is open in both, and a second thread reads through h5py all the while.
    program = """
        import threading

        done = threading.Event()
        failed = []

        def read_on(images):
            try:
                while not done.is_set():
                    assert np.array_equal(images[100:130], images_of(range(100, 130)))
            except BaseException as error:
                failed.append(error)

        with h5py.File(path) as file:
            images = file["images"]
            thread = threading.Thread(target=read_on, args=[images])
            thread.start()
            for epoch in range(20):
                for source in "hdf5", "direct":
                    for step, _ in enumerate(use_chunkio(path, source=source)):
                        assert np.array_equal(images[step], images_of([step])[0])
            done.set()
            thread.join()
        assert not failed, failed
    """
    run(tmp_path, modules, program)


@pytest.mark.parametrize("modules", BOTH_ORDERS, ids="-".join)
def test_errors_of_both_stay_apart(tmp_path, modules):
    program = """
        import pathlib

        pathlib.Path(other).write_bytes(b"not HDF5" * 1000)
        with h5py.File(path) as file:
            for _ in range(3):
                try:
                    chunkio.Dataset(other)
                    raise AssertionError("opened")
                except (chunkio.Error, ValueError, OSError) as error:
                    assert other in str(error), error
                try:
                    h5py.File(other)
                    raise AssertionError("opened")
                except OSError as error:
                    assert "file signature not found" in str(error), error
                assert "nothing" not in file
            for _ in use_chunkio(path):
                pass
            assert file["images"].shape == (230, 6, 5, 3)
    """
    run(tmp_path, modules, program)


@pytest.mark.parametrize("modules", BOTH_ORDERS, ids="-".join)
def test_processes_that_are_forked(tmp_path, modules):
    program = """
        import multiprocessing

        def read(path):
            for _ in use_chunkio(path):
                pass
            with h5py.File(path) as file:
                return int(file["labels"][229])

        if __name__ == "__main__":
            assert read(path) == 229
            with multiprocessing.get_context("fork").Pool(2) as pool:
                assert pool.map(read, [path] * 6) == [229] * 6
    """
    run(tmp_path, modules, program)
