"""h5pack export: images come back bit by bit, and a folder appears whole or not at all."""

import csv
import pathlib
import resource
import shutil
import subprocess
import time
import unittest

import h5py
import numpy as np
from PIL import Image

import sources
import under_strace
from support import H5PACK, CliTest, flip, make_class_folder, picture, pillow_pixels, tree, write_picture


def datasets(path):
    """All datasets of a file by name, and what `images` says of classes."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.__setitem__(name, item[()])
                        if isinstance(item, h5py.Dataset) else None)
        for name in ("class_names", "attribute_names"):
            if name in file["images"].attrs:
                found["@" + name] = file["images"].attrs[name]
    return found


class ExportTest(CliTest):
    def assert_same_datasets(self, a, b, without=()):
        first, second = datasets(self.dir / a), datasets(self.dir / b)
        for name in without:
            first.pop(name, None)
            second.pop(name, None)
        self.assertEqual(first.keys(), second.keys())
        for name, values in first.items():
            np.testing.assert_array_equal(values, second[name], name)

    def table(self, folder):
        with open(self.dir / folder / "samples.csv", newline="") as file:
            return list(csv.DictReader(file))

    def test_round_trip_of_a_folder(self):
        make_class_folder(self.dir / "photos", ["cat", "dog", "an \u00f6tter"], 12, height=20, width=24)
        for options in ([], ["--seed", "5", "--out-layout", "nchw"], ["--order", "source", "--channels", "gray"]):
            with self.subTest(options):
                for name in ("first.h5", "second.h5"):
                    (self.dir / name).unlink(missing_ok=True)
                subprocess.run(["rm", "-rf", self.dir / "out"], check=True)
                self.h5pack("folder", "photos", "-o", "first.h5", "--chunk", 5, *options)
                report = self.h5pack_json("export", "first.h5", "-o", "out")[0]
                self.assertEqual((report["images"], report["left_out"], report["notes"]), (36, [], []))
                self.assertEqual(sorted(report["folders"]), sorted(["cat", "dog", "an \u00f6tter"]))
                self.h5pack("folder", "out", "-o", "second.h5", "--chunk", 5, *options)
                self.assert_same_datasets("first.h5", "second.h5")

    def test_force_replaces_an_export_and_nothing_else(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 3)
        make_class_folder(self.dir / "others", ["bird"], 2, first_seed=50)
        for name in ("photos", "others"):
            self.h5pack("folder", name, "-o", f"{name}.h5")
        self.h5pack("export", "photos.h5", "-o", "out")
        self.h5pack("export", "others.h5", "-o", "expected")
        self.assert_refused(["export", "others.h5", "-o", "out"], 1, ["out"], "exists")
        for options in (["-o", "out", "--force"], ["-o", "out/", "-f"], ["-o", "new", "--force"]):
            self.h5pack("export", "others.h5", *options)
            self.assertEqual(tree(self.dir / options[1]), tree(self.dir / "expected"))
            self.assertFalse((self.dir / "out.partial").exists())
        # What a process left that was killed between marking the old folder and exchanging both.
        (self.dir / "out" / ".h5pack-unfinished").touch()
        self.h5pack("export", "photos.h5", "-o", "out", "--force")
        self.assertEqual(sorted(path.name for path in (self.dir / "out").iterdir()), ["cat", "dog", "samples.csv"])
        # And after it.
        shutil.copytree(self.dir / "expected", self.dir / "out.partial")
        (self.dir / "out.partial" / ".h5pack-unfinished").touch()
        self.h5pack("export", "photos.h5", "-o", "out", "--force")
        self.assertFalse((self.dir / "out.partial").exists())

        force = ["export", "others.h5", "--force", "-o"]
        (self.dir / "out" / "cat" / "mine.txt").write_text("mine")
        self.assert_refused([*force, "out"], 1, ["out", "cat/mine.txt"], "--force does not replace it; remove it")
        (self.dir / "out" / "cat" / "mine.txt").unlink()
        (self.dir / "out" / "link").symlink_to(self.dir / "photos")
        self.assert_refused([*force, "out"], 1, ["'link'"], "remove it")
        self.assert_refused([*force, "photos"], 1, ["photos", ".jpg"], "name another folder with -o")
        self.assert_refused([*force, "photos.h5"], 1, ["photos.h5"], "exists")
        (self.dir / "to-out").symlink_to(self.dir / "expected")
        self.assert_refused([*force, "to-out"], 1, ["to-out"], "exists")
        # A run that fails leaves the old one.
        whole = tree(self.dir / "expected")
        with h5py.File(self.dir / "others.h5") as file:
            offset = file["images"].id.get_chunk_info(0).byte_offset
        (self.dir / "short.h5").write_bytes((self.dir / "others.h5").read_bytes()[:offset])
        self.assertNotEqual(self.run_h5pack("export", "short.h5", "-o", "expected", "--force").returncode, 0)
        self.assertEqual(tree(self.dir / "expected"), whole)

    def test_pictures_are_those_of_the_file(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 7)
        self.h5pack("folder", "photos", "-o", "a.h5", "--chunk", 3)
        self.h5pack("export", "a.h5", "-o", "out", "--threads", 3)
        stored = datasets(self.dir / "a.h5")
        rows = {int(source): row for row, source in enumerate(stored["source_index"])}
        pictures = sorted((self.dir / "out").rglob("*.png"))
        self.assertEqual([p.name for p in pictures], [f"{i:06d}.png" for i in range(14)])
        for path in pictures:
            row = rows[int(path.stem)]
            np.testing.assert_array_equal(pillow_pixels(path), stored["images"][row])
            self.assertEqual(path.parent.name, ["cat", "dog"][stored["labels"][row]])
        table = self.table("out")
        self.assertEqual([line["path"] for line in table],
                         [f"{p.parent.name}/{p.name}" for p in pictures])
        self.assertEqual([line["source_index"] for line in table], [str(i) for i in range(14)])
        self.assertEqual([line["label"] for line in table], ["cat"] * 7 + ["dog"] * 7)

    def test_the_table_packs_again(self):
        sources.write_cifar10(self.dir / "cifar", per_batch=4)
        self.h5pack("cifar", "cifar", "-o", "packed")
        self.h5pack("export", "packed/train.h5", "-o", "out")
        self.h5pack("csv", "out/samples.csv", "-o", "again.h5")
        self.assert_same_datasets("packed/train.h5", "again.h5")

    def test_attribute_tables_and_fields_come_as_csv(self):
        attributes, partition, identity, landmarks, _ = sources.write_celeba(
            self.dir / "celeba", 20, size=(22, 18))
        self.h5pack("celeba", "celeba", "-o", "packed")
        self.h5pack("export", "packed/train.h5", "-o", "out")
        rows = np.flatnonzero(partition == 0)
        table = self.table("out")
        self.assertEqual(list(table[0])[:41], ["path", *sources.CELEBA_ATTRIBUTES])
        self.assertEqual([[int(line[name]) for name in sources.CELEBA_ATTRIBUTES] for line in table],
                         attributes[rows].tolist())
        self.assertEqual([int(line["identity"]) for line in table], identity[rows].tolist())
        self.assertEqual([[int(line[f"landmarks_{i}"]) for i in range(10)] for line in table],
                         landmarks[rows].tolist())
        self.assertEqual(sorted(p.name for p in (self.dir / "out").iterdir()),
                         [f"{i:06d}.png" for i in range(len(rows))] + ["samples.csv"])

    def test_foreign_files(self):
        rgba = np.random.default_rng(3).integers(0, 256, (9, 8, 6, 4), np.uint8)
        weights = np.array([0.1, -1e300, 5e-324, 1 / 3, 0, 1, 2, 3, np.pi])
        with h5py.File(self.dir / "f.h5", "w") as file:
            file.create_dataset("data", data=rgba.transpose(0, 3, 1, 2), chunks=(2, 4, 3, 6), compression="gzip")
            file["label"] = np.array([3, 11, 3, 3, 11, 0, 0, 11, 3], np.int32)
            file["weights"] = weights
            file["masks"] = np.zeros((9, 8, 9), np.uint8)
        report = self.h5pack_json("export", "f.h5", "-o", "out", "--layout", "nchw")[0]
        self.assertEqual(report["folders"], ["00", "03", "11"])
        self.assertEqual(report["left_out"], ["masks"])
        self.assertEqual(len(report["notes"]), 1)
        for i, folder in enumerate(("03", "11", "03", "03", "11", "00", "00", "11", "03")):
            with Image.open(self.dir / "out" / folder / f"{i:06d}.png") as image:
                np.testing.assert_array_equal(np.asarray(image), rgba[i])
        self.assertEqual([float(line["weights"]) for line in self.table("out")], weights.tolist())

    def test_labels_that_are_no_classes(self):
        with h5py.File(self.dir / "f.h5", "w") as file:
            file["images"] = np.stack([picture(i, 8, 8) for i in range(3)])
            file["labels"] = np.array([-1, 10**12, 4])
        report = self.h5pack_json("export", "f.h5", "-o", "out")[0]
        self.assertEqual(report["folders"], [])
        self.assertEqual([line["label"] for line in self.table("out")], ["-1", str(10**12), "4"])

    def test_class_names_that_cannot_be_folders(self):
        for i in range(3):
            write_picture(self.dir / f"{i}.png", i)
        (self.dir / "list.csv").write_text('path,label\n0.png,"a/b"\n1.png,"with ""quotes"", and\nlines"\n2.png,..\n')
        self.h5pack("csv", "list.csv", "-o", "a.h5")
        report = self.h5pack_json("export", "a.h5", "-o", "out")[0]
        self.assertEqual(report["folders"], ["0", "1", "2"])
        self.assertIn("cannot be folders", report["notes"][0])
        self.assertEqual([line["label"] for line in self.table("out")],
                         ["a/b", 'with "quotes", and\nlines', ".."])
        self.h5pack("csv", "out/samples.csv", "-o", "again.h5")
        self.assert_same_datasets("a.h5", "again.h5")

    def test_a_class_without_pictures_is_mentioned(self):
        make_class_folder(self.dir / "photos" / "train", ["cat", "dog"], 2)
        make_class_folder(self.dir / "photos" / "test", ["dog"], 2)
        self.h5pack("folder", "photos", "-o", "packed")
        report = self.h5pack_json("export", "packed/test.h5", "-o", "out")[0]
        self.assertEqual(report["folders"], ["dog"])
        self.assertRegex(report["notes"][0], "labels would change.*no images")


class RefusedTest(CliTest):
    def setUp(self):
        super().setUp()
        make_class_folder(self.dir / "photos", ["cat", "dog"], 8)
        self.h5pack("folder", "photos", "-o", "a.h5", "--chunk", 4)

    def test_outputs_that_are_not_new(self):
        (self.dir / "out").mkdir()
        (self.dir / "file").write_text("here first")
        (self.dir / "half.partial").mkdir()
        (self.dir / "half.partial" / "x").write_text("somebody's")
        self.assert_refused(["export", "a.h5", "-o", "out"], 1, ["'out' exists"], "new folder")
        self.assert_refused(["export", "a.h5", "-o", "out/"], 1, ["'out' exists"], "new folder")
        self.assert_refused(["export", "a.h5", "-o", "file"], 1, ["'file' exists"], "new folder")
        self.assert_refused(["export", "a.h5", "-o", "half"], 1, ["half.partial"], "remove it")
        self.assert_refused(["export", "a.h5", "-o", "no/such/place"], 1, ["no/such/place"], "make it first")

    def test_damaged_pictures_are_not_exported(self):
        with h5py.File(self.dir / "a.h5") as file:
            offset = file["images"].id.get_chunk_info(2).byte_offset
        flip(self.dir / "a.h5", offset + 5, 4)
        self.assert_refused(["export", "a.h5", "-o", "out"], 1, ["a.h5", "chunk 2 (rows 8 to 11)"], "digest")

    def test_channels_that_are_no_png(self):
        with h5py.File(self.dir / "f.h5", "w") as file:
            file["images"] = np.zeros((3, 8, 8, 2), np.uint8)
        self.assert_refused(["export", "f.h5", "-o", "out", "--layout", "nhwc"], 1, ["2 channels"], "1, 3 and 4")

    def test_files_that_may_not_grow(self):
        before = tree(self.dir)
        result = self.run_h5pack("export", "a.h5", "-o", "out", "--quiet",
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700)))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, "^h5pack: cannot write 'out.partial/.*free some space")
        self.assertEqual(tree(self.dir), before)

    def test_usage(self):
        for arguments in (["export", "a.h5"], ["export", "-o", "out"], ["export", "a.h5", "-o", ""],
                          ["export", "a.h5", "-o", "out", "--threads", "5000"]):
            self.assertEqual(self.run_h5pack(*arguments).returncode, 2, arguments)


@under_strace.required
class FaultTest(CliTest):
    """Every call that makes a folder or file fails once: one line, and nothing is left behind."""

    def setUp(self):
        super().setUp()
        make_class_folder(self.dir / "photos", ["cat", "dog"], 2, height=8, width=8)
        self.h5pack("folder", "photos", "-o", "a.h5")
        self.trace = pathlib.Path(str(self.dir) + ".strace")
        self.addCleanup(self.trace.unlink, missing_ok=True)

    def run_traced(self, *inject):
        return subprocess.run(
            ["strace", "-f", "-o", self.trace, "-e", "trace=mkdir,renameat2,syncfs,fsync", *inject,
             H5PACK, "export", "a.h5", "-o", "out", "--quiet"],
            cwd=self.dir, env=under_strace.environment(), capture_output=True, text=True, timeout=120)

    def test_failures_leave_nothing(self):
        before = tree(self.dir)
        for call, count in (("mkdir", 3), ("syncfs", 1), ("renameat2", 1)):
            for number in range(1, count + 1):
                with self.subTest(call, number=number):
                    result = self.run_traced("-e", f"inject={call}:error=EIO:when={number}")
                    self.assertIn("INJECTED", self.trace.read_text())
                    self.assertEqual(result.returncode, 1, result.stderr)
                    self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                    self.assertIn("out", result.stderr)
                    self.assertEqual(tree(self.dir), before)

    def test_what_a_killed_export_left_is_removed_by_the_next(self):
        for call, number in (("mkdir", 2), ("mkdir", 3), ("syncfs", 1), ("renameat2", 1)):
            with self.subTest(call, number=number):
                result = self.run_traced("-e", f"inject={call}:signal=KILL:when={number}")
                if "SIGKILL" not in self.trace.read_text():
                    self.skipTest("strace cannot trace here: " + result.stderr[:200])
                self.assertTrue((self.dir / "out.partial").is_dir())
                self.assertFalse((self.dir / "out").exists())
                if call == "renameat2":  # all images are there, and nothing tells whose they are
                    self.assert_refused(["export", "a.h5", "-o", "out"], 1, ["out.partial"], "remove it")
                    shutil.rmtree(self.dir / "out.partial")
                    continue
                self.h5pack("export", "a.h5", "-o", "out")
                self.assertFalse((self.dir / "out.partial").exists())
                self.assertEqual(sorted(path.name for path in (self.dir / "out").iterdir()),
                                 ["cat", "dog", "samples.csv"])
                shutil.rmtree(self.dir / "out")
        (self.dir / "out.partial").mkdir()  # killed before it could mark its folder
        self.h5pack("export", "a.h5", "-o", "out")

    def test_what_an_export_could_not_remove_is_removed_by_the_next(self):
        result = subprocess.run(
            ["strace", "-f", "-o", self.trace, "-e", "inject=fsync:error=EIO", "-e",
             "inject=unlinkat,rmdir:error=EACCES", H5PACK, "export", "a.h5", "-o", "out", "--quiet"],
            cwd=self.dir, env=under_strace.environment(), capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(self.trace.read_text(), r"fsync.*INJECTED")
        self.assertTrue(any((self.dir / "out.partial").iterdir()))
        self.h5pack("export", "a.h5", "-o", "out")
        self.assertFalse((self.dir / "out.partial").exists())

    def test_a_running_export_is_not_touched(self):
        process = subprocess.Popen(
            ["strace", "-f", "-o", self.trace, "-e", "inject=mkdir:delay_enter=3000000:when=3", H5PACK, "export",
             "a.h5", "-o", "out", "--quiet"],
            cwd=self.dir, env=under_strace.environment(), stderr=subprocess.PIPE, text=True)
        try:
            deadline = time.monotonic() + 20
            while not (self.dir / "out.partial" / "cat").exists() and process.poll() is None:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            if process.poll() is not None:
                self.skipTest("strace cannot trace here")
            result = self.run_h5pack("export", "a.h5", "-o", "out", "--quiet")
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertRegex(result.stderr, "out.partial' is in use by another process")
        finally:
            _, messages = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, messages)
        self.assertTrue((self.dir / "out" / "samples.csv").exists())

    def test_a_signal_leaves_nothing(self):
        before = tree(self.dir)
        result = self.run_traced("-e", "inject=mkdir:signal=TERM:when=3")
        self.assertIn("SIGTERM", self.trace.read_text())
        self.assertEqual(result.returncode, 143, result.stderr)
        self.assertRegex(result.stderr, "SIGTERM; the unfinished folder was removed")
        self.assertEqual(tree(self.dir), before)


if __name__ == "__main__":
    unittest.main()
