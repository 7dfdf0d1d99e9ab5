"""Packing encoded images where something is in the way, and reading files of them that are damaged or made to harm."""

import itertools
import os
import resource
import shutil
import signal
import subprocess
import time
import zlib

import h5py
import numpy as np
from PIL import Image

from support import SKIPPED, CliTest, make_class_folder, tree, write_picture

MIB = 1 << 20


def declared(format, height, width):
    """An image of a few bytes that says how large it is, and holds next to nothing."""
    def chunk(name, data):
        return len(data).to_bytes(4, "big") + name + data + zlib.crc32(name + data).to_bytes(4, "big")

    if format == "png":
        header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes((8, 2, 0, 0, 0))
        return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(10 * MIB))) +
                chunk(b"IEND", b""))
    if format == "jpeg":
        tables = b"".join(b"\xff\xdb\0\x43" + bytes((i,)) + bytes([16] * 64) for i in range(1))
        frame = b"\xff\xc0\0\x0b\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big") + b"\1\1\x11\0"
        codes = b"".join(b"\xff\xc4\0\x14" + bytes((kind,)) + b"\1" + bytes(15) + b"\0" for kind in (0, 0x10))
        return b"\xff\xd8" + tables + frame + codes + b"\xff\xda\0\x08\1\1\0\0\x3f\0" + bytes(1000) + b"\xff\xd9"
    size = ((width - 1) | (height - 1) << 14).to_bytes(4, "little")
    body = b"WEBPVP8L" + (1006).to_bytes(4, "little") + b"\x2f" + size + bytes(1001)
    return b"RIFF" + len(body).to_bytes(4, "little") + body


def data_limit(most):
    """For a process before it starts: so many bytes of memory. Sanitizers reserve more than any limit."""
    return None if os.environ.get("CHUNKIO_SANITIZE") else lambda: resource.setrlimit(resource.RLIMIT_DATA, (most, most))


class EncodedPackFaultsTest(CliTest):
    def setUp(self):
        super().setUp()
        make_class_folder(self.dir / "photos", ["cat", "dog"], 100, 60, 80)
        self.pack = ["folder", "photos", "--store", "encoded", "-o", "out.h5"]

    def test_no_space_leaves_nothing(self):
        before = tree(self.dir)
        # ThreadSanitizer itself writes a short file before the program begins.
        none = () if "thread" in os.environ.get("CHUNKIO_SANITIZE", "") else (0,)
        for limit in (*none, 1000, MIB, MIB + (100 << 10), MIB + (300 << 10), MIB + (336 << 10)):
            for options in ([], ["--max-side", 70]):
                with self.subTest(limit=limit, options=options):
                    result = self.run_h5pack(*self.pack, *options, "--quiet", preexec_fn=lambda: resource.setrlimit(
                        resource.RLIMIT_FSIZE, (limit, limit)))
                    if result.returncode == 0:
                        (self.dir / "out.h5").unlink()
                        continue
                    self.assert_one_line(result, 1, "out.h5", "File too large")
                    self.assertEqual(tree(self.dir), before)

    def test_a_full_disk_leaves_nothing(self):
        disk = self.dir / "disk"
        disk.mkdir()
        failed = 0
        for size in (4 << 10, 64 << 10, MIB, MIB + (100 << 10), MIB + (200 << 10), 16 * MIB):
            for options in ([], ["--max-side", 70]):
                with self.subTest(size=size, options=options):
                    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk]
                    if subprocess.run(mount, stderr=subprocess.DEVNULL).returncode != 0:
                        self.skipTest("file systems may not be mounted here")
                    try:
                        result = self.run_h5pack(*self.pack[:-1], "disk/out.h5", *options, "--quiet")
                        if result.returncode == 0:
                            self.h5pack("verify", "disk/out.h5")
                            continue
                        failed += 1
                        self.assert_one_line(result, 1, "out.h5", "No space left")
                        self.assertEqual(list(disk.iterdir()), [])
                    finally:
                        subprocess.run(["umount", disk], check=True)
        self.assertTrue(4 <= failed < 12)

    def test_outputs_that_cannot_be(self):
        locked = self.dir / "locked"
        locked.mkdir()
        locked.chmod(0o555)
        (self.dir / "out.h5").write_bytes(b"the only copy of something")
        self.assert_refused(self.pack, 1, ["out.h5"], "--force")
        self.assert_refused([*self.pack[:-1], "locked/out.h5"], 1, ["locked"], "[Pp]ermission", unprivileged=True)
        self.assert_refused([*self.pack[:-1], "photos/cat/000.jpg", "--force"], 1, ["000.jpg"], "one of the inputs")
        # --force replaces what is there only when the new file is whole.
        (self.dir / "photos" / "dog" / "099.jpg").write_bytes(b"no image")
        self.assert_refused([*self.pack, "--force"], 1, ["099.jpg"], "not an image|convert|remove")

    def change_while_packing(self, change, *options):
        """Runs it, with change() done when the output was begun. Returns the run."""
        pack = [*self.pack, "--order", "source", "--threads", "1", "--quiet", *options]
        for _ in range(50):
            process = self.start(pack)
            while not (self.dir / "out.h5.partial").exists() and process.poll() is None:
                time.sleep(0.0005)
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.01)
            if (self.dir / "out.h5.partial").exists():
                change()
                process.send_signal(signal.SIGCONT)
                code, _, errors = self.end(process)
                return code, errors
            process.send_signal(signal.SIGCONT)  # it was through already
            self.end(process)
            (self.dir / "out.h5").unlink(missing_ok=True)
        self.fail("it never was in the middle")

    def test_files_that_vanish_or_change(self):
        victim = self.dir / "photos" / "dog" / "099.jpg"
        original = victim.read_bytes()

        def replaced():
            write_picture(victim, 7777, 31, 32)

        def lengthened():
            victim.write_bytes(original + b"more")

        def shortened():
            victim.write_bytes(original[:-100])

        for change in (victim.unlink, replaced, lengthened, shortened):
            for options in ([], ["--max-side", "70"]):
                with self.subTest(change=getattr(change, "__name__", change), options=options):
                    code, errors = self.change_while_packing(change, *options)
                    self.assertEqual((code, len(errors.splitlines())), (1, 1), errors)
                    self.assertIn("dog/099.jpg", errors)
                    self.assertEqual(list(self.dir.glob("out*")), [])
                    victim.write_bytes(original)
                    code, errors = self.change_while_packing(change, "--on-error", "skip", *options)
                    self.assertEqual(code, SKIPPED, errors)
                    self.assertEqual(self.h5pack_json("info", "out.h5")[0]["num_samples"], 199)
                    self.h5pack("verify", "out.h5")
                    (self.dir / "out.h5").unlink()
                    victim.write_bytes(original)

    def test_skipped_images_take_no_room(self):
        """What was reserved for them is given back."""
        noise = np.random.default_rng(1).integers(0, 256, (1000, 1000, 3), np.uint8)
        Image.fromarray(noise).save(self.dir / "photos" / "dog" / "large.png")
        large = self.dir / "photos" / "dog" / "large.png"
        large.write_bytes(large.read_bytes()[:-2000])
        self.assertEqual(self.run_h5pack(*self.pack, "--on-error", "skip").returncode, SKIPPED)
        status = (self.dir / "out.h5").stat()
        self.assertLess(status.st_blocks * 512, status.st_size + (64 << 10))

    def test_declared_sizes_are_refused_before_memory_is_taken(self):
        for format, extension, side in (("png", "png", 60000), ("jpeg", "jpg", 65000), ("webp", "webp", 16384)):
            with self.subTest(format):
                bomb = self.dir / "photos" / "dog" / f"bomb.{extension}"
                bomb.write_bytes(declared(format, side, side))
                for options in ([], ["--max-side", "70"]):
                    result = self.run_h5pack(*self.pack, *options, "--quiet", preexec_fn=data_limit(600 * MIB))
                    self.assert_one_line(result, 1, bomb.name, "more than the limit", "--max-pixels")
                    self.assertEqual(list(self.dir.glob("out*")), [])
                bomb.unlink()


class HostileEncodedFileTest(CliTest):
    """Each command ends with one line, whatever the file claims, soon and without its memory."""
    COMMANDS = (["info", "x.h5"], ["stream", "x.h5", "--decode", "16"], ["verify", "x.h5"],
                ["repack", "x.h5", "-o", "new.h5", "--order", "shuffled"],
                ["repack", "x.h5", "-o", "new.h5", "--decode", "16"], ["export", "x.h5", "-o", "new"])

    def setUp(self):
        super().setUp()
        make_class_folder(self.dir / "photos", ["cat", "dog"], 15, 40, 50)
        exif = Image.Exif()
        exif[274] = 6
        write_picture(self.dir / "photos" / "dog" / "turned.jpg", 1, 24, 40, exif=exif)
        self.h5pack("folder", "photos", "-o", "good.h5", "--store", "encoded", "--orientation", "apply")

    def look(self, *, fails=(), limit=1 << 30):
        """Runs all commands. Returns what each said; those of `fails` must end with an error, none by a signal."""
        said = {}
        for command in self.COMMANDS:
            for path in self.dir.glob("new*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            began = time.monotonic()
            result = self.run_h5pack(*command, "--quiet", preexec_fn=data_limit(limit))
            self.assertIn(result.returncode, (0, 1, 4), (command, result.stderr))
            if result.returncode == 1:
                self.assert_one_line(result, 1, "x.h5")
                self.assertEqual(list(self.dir.glob("new*")), [])
            name = " ".join(command[:1] + command[4:5])
            if command[0] in fails:
                self.assertNotEqual(result.returncode, 0, (command, result.stdout))
            self.assertLess(time.monotonic() - began, 20, command)
            said[name] = result.stdout + result.stderr
        return said

    def damage(self, change):
        shutil.copy(self.dir / "good.h5", self.dir / "x.h5")
        with h5py.File(self.dir / "x.h5", "r+") as file:
            change(file["images"])

    def test_offsets(self):
        def set_offset(row, value):
            def change(group):
                group["indptr"][row] = value
            return change

        reading = ("stream", "repack", "export", "verify")
        for row, value, fails in ((0, 5, ("info", *reading)), (0, -1, ("info", *reading)), (31, 2**40, ("info", *reading)),
                                  (31, 0, ("info", *reading)), (10, 2**40, reading), (10, -5, reading), (10, 2**62, reading),
                                  (10, 0, reading), (30, -2**63, reading)):
            with self.subTest(row=row, value=value):
                self.damage(set_offset(row, value))
                said = self.look(fails=fails)
                self.assertRegex(said["stream"], "damaged.*(indptr|offsets)")

    def replace(self, name, values, **options):
        def change(group):
            del group[name]
            group.create_dataset(name, data=values, **options)
        return change

    def test_members_of_another_kind(self):
        everything = ("info", "stream", "verify", "repack", "export")
        count = 31
        for name, values in (("data", np.zeros(0, np.uint8)), ("data", np.zeros(1000, np.int16)),
                             ("data", np.zeros((1000, 2), np.uint8)), ("indptr", np.zeros(count + 1)),
                             ("indptr", np.zeros((count + 1, 1), np.int64)), ("indptr", np.zeros(1, np.int64)),
                             ("indptr", np.zeros(0, np.int64)), ("sizes", np.zeros((count, 3), np.int32)),
                             ("sizes", np.zeros((count + 1, 2), np.int32)), ("sizes", np.zeros((count, 2))),
                             ("orientations", np.zeros(count, np.uint8)), ("orientations", np.full(count, 9, np.uint8)),
                             ("orientations", np.ones(count - 1, np.uint8)), ("orientations", np.ones(count, np.int64))):
            with self.subTest(name=name, shape=values.shape, dtype=values.dtype):
                self.damage(self.replace(name, values))
                self.look(fails=everything)
        for name in ("data", "indptr", "sizes"):
            with self.subTest(removed=name):
                self.damage(lambda group: group.__delitem__(name))
                self.look(fails=everything)

    def test_sizes_of_images(self):
        """A reader goes by what the images say themselves."""
        for value in (0, -1, 2**31 - 1):
            with self.subTest(value):
                self.damage(lambda group: group["sizes"].__setitem__(5, value))
                said = self.look(fails=("export",))
                self.assertRegex(said["repack --order"], r"image 5 .* is damaged.*sizes")

    def test_claimed_limits(self):
        for name, values in itertools.product(("max_height", "max_width", "max_pixels"), (0, -1, 2**62, 1.5, "x", [1, 2])):
            with self.subTest(name=name, values=values):
                self.damage(lambda group: group.attrs.__setitem__(name, values))
                self.look(fails=("stream",) if values == 1.5 else ("info", "stream", "verify", "repack", "export"))
        for height, width, pixels in ((65535, 65535, 65535 * 65535), (10, 10, 100)):
            def change(group):
                group.attrs.update({"max_height": height, "max_width": width, "max_pixels": pixels})
            with self.subTest(height=height, width=width):
                self.damage(change)
                said = self.look(fails=("stream",))
                self.assertRegex(said["stream"], "memory|more than any image")

    def test_bytes_that_are_only_claimed(self):
        """Zeros that decode from a small file, and images that are nothing else."""
        def change(group):
            count = 2**28
            del group["data"], group["indptr"]
            group.create_dataset("data", (count,), np.uint8, chunks=(2**25,), compression="gzip")
            offsets = np.zeros(32, np.int64)
            offsets[1:] = np.linspace(1, count, 31)
            group["indptr"] = offsets
        self.damage(change)
        self.look(fails=("stream", "repack", "export"))

    def test_bombs(self):
        for format, side in (("png", 60000), ("jpeg", 65000), ("webp", 16384)):
            for honest in (False, True):
                with self.subTest(format=format, honest=honest):
                    bomb = np.frombuffer(declared(format, side, side), np.uint8)

                    def change(group):
                        limits = (side, side, side * side) if honest else (50, 50, 2500)
                        self.replace("data", bomb)(group)
                        self.replace("indptr", np.concatenate([np.arange(31), [len(bomb)]]))(group)
                        group.attrs.update(dict(zip(("max_height", "max_width", "max_pixels"), limits)))
                    self.damage(change)
                    said = self.look(fails=("stream",))
                    self.assertRegex(said["stream"], "memory|cannot be decoded")

    def test_cut_anywhere(self):
        whole = (self.dir / "good.h5").read_bytes()
        for part in range(0, 16):
            with self.subTest(part):
                (self.dir / "x.h5").write_bytes(whole[:len(whole) * part // 16])
                self.look(fails=("info", "stream", "verify", "repack", "export"))

    def test_damaged_images_are_found(self):
        whole = (self.dir / "good.h5").read_bytes()
        with h5py.File(self.dir / "good.h5") as file:
            begin = file["images/data"].id.get_offset()
            offsets = file["images/indptr"][:]
        random = np.random.default_rng(3)
        for row in range(0, 31, 5):
            with self.subTest(row):
                damaged = bytearray(whole)
                damaged[begin + int(random.integers(offsets[row], offsets[row + 1]))] ^= 1 << int(random.integers(8))
                (self.dir / "x.h5").write_bytes(damaged)
                said = self.look(fails=("verify", "export"))
                self.assertRegex(said["verify"], f"row {row}\\b")
                self.assertRegex(said["repack --order"], f"row {row} of 'x.h5' does not match its digest")


if __name__ == "__main__":
    import unittest

    unittest.main()
