"""What the tests of the whole program share: running h5pack, small images, and looking for traces.

Every test file is a program: H5PACK names the binary, NumPy, h5py and Pillow must be importable.
"""

import atexit
import functools
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import h5py
import numpy as np
from PIL import Image

sys.path.append(str(pathlib.Path(__file__).parents[1] / "scripts"))
import under_strace  # noqa: E402
from h5_contents import assert_contents, contents, datasets_and_attributes  # noqa: E402

# A shell that starts the tests in the background has SIGINT ignored, which h5pack would go on with.
signal.signal(signal.SIGINT, signal.default_int_handler)

H5PACK = os.environ.get("H5PACK", "h5pack")
TIMEOUT_SECONDS = 120

# Exit codes.
SKIPPED = 3
STOPPED = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}

# What launchers set; a test itself may run under one of them.
LAUNCHERS = ("RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
             "SLURM_PROCID", "SLURM_NTASKS")

# The user that owns nothing on Debian; root drops to it where file permissions are tested.
NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def picture(seed, height=32, width=32, channels=3):
    """A smooth image that no other seed gives, uint8 [H,W,C] or [H,W]: JPEG keeps it recognisable."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    planes = []
    for _ in range(channels):
        a, b, c = random.uniform(-1, 1, 3)
        planes.append(127.5 + 120 * np.sin(3 * (a * x + b * y) + 6 * c))
    stacked = np.stack(planes, axis=-1).round().astype(np.uint8)
    return stacked[:, :, 0] if channels == 1 else stacked


def write_picture(path, seed, height=32, width=32, **save_options):
    """Writes picture(seed) in the format its extension says."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() in (".jpg", ".jpeg"):
        save_options.setdefault("quality", 92)
    Image.fromarray(picture(seed, height, width)).save(path, **save_options)
    return path


def pillow_pixels(path):
    """What Pillow decodes, uint8 [H,W,3]."""
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def make_class_folder(root, classes, per_class, height=32, width=32, first_seed=0):
    """ROOT/CLASS/NNN.jpg; returns the paths in ImageFolder order with their labels."""
    samples = []
    seed = first_seed
    for label, name in enumerate(sorted(classes)):
        for i in range(per_class):
            path = write_picture(pathlib.Path(root) / name / f"{i:03d}.jpg", seed, height, width)
            samples.append((str(path), label))
            seed += 1
    return samples


def make_photos_with_bad_names(folder, per_class, copies, size):
    """FOLDER/photos: two classes of images, each under `copies` names more, every 11th of these a bad image."""
    samples = make_class_folder(folder / "photos", ["cat", "dog"], per_class, *size)
    (folder / "bad.jpg").write_bytes(b"no image")
    for number, (path, _) in enumerate(samples):
        for i in range(copies):
            bad = (number + i) % 11 == 0
            os.link(folder / "bad.jpg" if bad else path, f"{path[:-4]}_{i}.jpg")


def damaged_heaps(path):
    """Writes images with attributes in a heap again and again, each time with other bits of that heap flipped: libhdf5
    1.10 crashes over some of these files."""
    with h5py.File(path, "w") as file:
        file["images"] = (np.arange(40 * 8 * 8 * 3) % 251).astype(np.uint8).reshape(40, 8, 8, 3)
        for i in range(8):
            file["images"].attrs[f"note {i}"] = "a string of any length " * (i + 1)
    whole = path.read_bytes()
    begin = whole.index(b"GCOL")
    chosen = random.Random(0)
    for _ in range(60):
        path.write_bytes(whole)
        for _ in range(4):
            flip(path, begin + 8 + chosen.randrange(200), 1 << chosen.randrange(8))
        yield


def flip(path, offset, bits=1):
    """Flips `bits` of the byte at `offset` of a file."""
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ bits]))


def object_header(path, name):
    """Byte offset of the header of an object of an HDF5 file, in which h5pack's files have a checksum."""
    with h5py.File(path) as file:
        return h5py.h5o.get_info(file[name].id).addr


def subcommands(*command):
    """The names of the commands that the help of h5pack, or of one of its commands, lists."""
    shown = subprocess.run([H5PACK, *command, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(?m)^  (\w+) ", shown[shown.lower().index("subcommands:"):])


def chunk_offset(path, number=0, name="images"):
    """Where a chunk of a dataset begins."""
    with h5py.File(path) as file:
        return file[name].id.get_chunk_info(number).byte_offset


def arrays(path):
    """The values of every dataset by its name."""
    return datasets_and_attributes(path)[0]


def tree(folder):
    """Every entry below `folder`: its kind, and the digest of a file's bytes."""
    entries = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            entries[name] = "link to " + os.readlink(path)
        elif path.is_dir():
            entries[name] = "folder"
        else:
            try:
                entries[name] = hashlib.sha256(path.read_bytes()).hexdigest()
            except PermissionError:
                entries[name] = f"unreadable, {path.stat().st_size} bytes"
    return entries


@functools.cache
def binary_for_nobody():
    """h5pack where any user may run it: the build folder may lie in a private one."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="h5pack-binary-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    return shutil.copy(H5PACK, folder)


class CliTest(unittest.TestCase):
    """A scratch folder for each test, and runs of h5pack in it."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="h5pack-test-"))
        # Runs as another user must be able to come here.
        self.dir.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def write_h5(self, name, /, **datasets):
        """A file as h5py users make them. Each dataset: its values, or what create_dataset() takes."""
        with h5py.File(self.dir / name, "w") as file:
            for dataset, data in datasets.items():
                file.create_dataset(dataset, **(data if isinstance(data, dict) else {"data": data}))

    def pack_photos(self, *options, classes=("cat", "dog"), per_class=4, output="photos.h5", **more):
        """Packs new images of some classes."""
        samples = make_class_folder(self.dir / "photos", classes, per_class, **more)
        self.h5pack("folder", "photos", "-o", output, *options)
        return samples

    def let_nobody_write(self, path):
        """If the tests run as root: hands `path` to the user of runs with unprivileged=True."""
        if os.geteuid() == 0:
            shutil.chown(path, user=NOBODY)

    def start(self, arguments):
        """h5pack in the scratch folder, running; end() waits for it."""
        return subprocess.Popen([H5PACK, *map(str, arguments)], cwd=self.dir, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def end(self, process):
        """Exit code (the signal, negative, if one killed it), stdout and stderr."""
        out, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertNotIn("HDF5-DIAG", errors)
        return process.returncode, out, errors

    def stop_in_the_middle(self, arguments, number=signal.SIGINT, output="out.h5"):
        """Stops h5pack when chunks are done, so that there is something to resume.

        It is stopped a little later each time until that has worked. If it ends before, everything is begun again.
        Returns the seconds that took, and what it said.
        """
        partial = self.dir / f"{output}.partial"
        before = set(self.dir.rglob("*"))
        wait = 0.0
        while True:
            process = self.start([*arguments, "--quiet"])
            while not partial.exists() and process.poll() is None:
                time.sleep(0.001)
            time.sleep(wait)
            sent = time.monotonic()
            process.send_signal(number)
            code, _, errors = self.end(process)
            took = time.monotonic() - sent
            # It was through, or, of a folder of files, with the one that is wanted.
            through = (-number, STOPPED[number]) if "/" in output else (-number,)
            if code in (0, SKIPPED) or (code in through and (self.dir / output).exists()):
                for path in set(self.dir.rglob("*")) - before:
                    if not path.is_dir():
                        path.unlink()
                wait *= random.random()
                continue
            self.assertEqual(code, STOPPED[number], errors)
            self.assertEqual(len(errors.splitlines()), 1, errors)
            self.assertFalse((self.dir / output).exists())
            if partial.exists():
                self.assertIn("--resume", errors)
                return took, errors
            self.assertEqual(list(self.dir.glob(f"{output}*")), [])
            wait += 0.01

    def assert_only_output(self):
        """Beside out.h5 there is nothing that was left."""
        self.assertEqual(sorted(path.name for path in self.dir.glob("out*")), ["out.h5"])

    def run_h5pack(self, *arguments, environment=None, unprivileged=False, **options):
        """Runs h5pack in the scratch folder; stdout and stderr as text."""
        command = [H5PACK, *map(str, arguments)]
        if unprivileged and os.geteuid() == 0:
            command = [*AS_NOBODY, binary_for_nobody(), *command[1:]]
        variables = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM", *LAUNCHERS)}
        variables.update(environment or {})
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        result = subprocess.run(command, cwd=self.dir, env=variables, timeout=TIMEOUT_SECONDS, text=True, **options)
        self.assertNotIn("HDF5-DIAG", result.stderr or "")
        return result

    def h5pack(self, *arguments, **options):
        """Runs h5pack, which must succeed; returns its stdout."""
        result = self.run_h5pack(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def h5pack_peak(self, *arguments):
        """Runs h5pack, which must succeed; returns its stdout and the most memory that it had, in bytes."""
        process = self.start(arguments)
        out, errors = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(process.returncode, 0, errors)
        return out, usage.ru_maxrss << 10

    def assert_memory(self, peak, budget):
        """Not under a sanitizer, which takes memory of its own. The program itself has some 30 MiB of libraries."""
        if not os.environ.get("CHUNKIO_SANITIZE"):
            self.assertLess(peak, budget + (58 << 20))

    def libhdf5_is_old(self):
        """Whether that of h5pack crashes over some of damaged_heaps()."""
        return re.search(r"^HDF5 +1\.10\.", self.h5pack("--version"), re.MULTILINE) is not None

    def traced(self, options, *arguments):
        """h5pack under strace with these options, and what strace saw."""
        trace = self.dir.parent / f"{self.dir.name}.strace"
        self.addCleanup(trace.unlink, missing_ok=True)
        result = subprocess.run(
            ["strace", "-f", "-o", trace, *options, H5PACK, *map(str, arguments)], cwd=self.dir, text=True,
            env=under_strace.environment(), capture_output=True, timeout=TIMEOUT_SECONDS)
        return result, trace.read_text(errors="replace")

    def assert_whole_or_absent_when_killed(self, output, command):
        """Kills h5pack at each call that changes a file: what is there must be whole, and a run after it works.

        No run takes a byte from what was there before. Returns how often it was killed, and how often `output` was
        there by then.
        """
        path = self.dir / output
        before = tree(self.dir)
        self.h5pack(*command)
        reference = contents(path)
        path.unlink()
        complete = killed = 0
        for name in ("pwrite64", "fdatasync", "fsync", "ftruncate", "renameat2"):
            for number in range(1, 30):
                with self.subTest(call=name, number=number):
                    result, _ = self.traced(["-e", f"inject={name}:signal=KILL:when={number}"], *command)
                    if result.returncode == 0:
                        path.unlink()
                        break
                    killed += 1
                    self.assertEqual(result.returncode, -signal.SIGKILL)
                    if path.exists():
                        complete += 1
                        assert_contents(self, path, reference)
                    self.h5pack(*command, "--force")
                    assert_contents(self, path, reference)
                    path.unlink()
                    self.assertEqual(tree(self.dir), before)
        self.assertGreater(killed, 3)
        return killed, complete

    def assert_one_line(self, result, code, *texts):
        """A program ended with this exit code and one line on stderr, in which these texts are."""
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for text in texts:
            self.assertIn(text, result.stderr)

    def assert_fails(self, arguments, pattern, code=1, **options):
        """h5pack must end with one line on stderr; it may have done something before."""
        result = self.run_h5pack(*arguments, "--quiet", **options)
        self.assert_one_line(result, code)
        self.assertRegex(result.stderr, pattern)
        return result

    def h5pack_json(self, *arguments, code=0, **options):
        """The objects h5pack prints with --json, one a line."""
        result = self.run_h5pack(*arguments, "--json", **options)
        self.assertEqual(result.returncode, code, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def assert_refused(self, arguments, code, names, way_out, unprivileged=False):
        """h5pack must fail with exit code `code` and one clear line, and leave no trace.

        names: texts that must be in the line, above all the file. way_out: a regular expression for what the
        person can do. Nothing in the scratch folder may change.
        """
        before = tree(self.dir)
        result = self.run_h5pack(*arguments, "--quiet", unprivileged=unprivileged)
        message = result.stderr
        self.assertEqual(result.returncode, code, message)
        self.assertEqual(result.stdout, "")
        lines = message.splitlines()
        self.assertEqual(len(lines), 1, message)
        self.assertTrue(message.startswith("h5pack: ") and message.endswith("\n"), message)
        for name in names:
            self.assertIn(str(name), message)
        self.assertRegex(message, way_out)
        self.assertEqual(tree(self.dir), before, "something was left behind or changed")

        # The same as JSON: the error is an object on stdout, the line on stderr stays.
        result = self.run_h5pack(*arguments, "--quiet", "--json", unprivileged=unprivileged)
        self.assert_one_line(result, code)
        error = json.loads(result.stdout)["error"]
        self.assertEqual(set(error), {"code", "message"})
        self.assertEqual(tree(self.dir), before, "something was left behind or changed")
        return message
