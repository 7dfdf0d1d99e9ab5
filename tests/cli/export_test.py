"""h5pack export: images come back bit by bit, and a folder appears whole or not at all."""

import csv
import os
import resource
import shutil
import subprocess
import time

import numpy as np
from PIL import Image

import sources
import under_strace
from h5_contents import datasets_and_attributes
from support import H5PACK, CliTest, chunk_offset, flip, make_class_folder, picture, pillow_pixels, tree, write_picture


def datasets(path):
    """All datasets of a file by name, and what `images` says of classes."""
    found, said, _ = datasets_and_attributes(path)
    return found | {"@" + name: said[name] for name in ("class_names", "attribute_names") if name in said}


class ExportTest(CliTest):
    def assert_same_datasets(self, a, b):
        first, second = datasets(self.dir / a), datasets(self.dir / b)
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
                self.h5pack("folder", "photos", "-o", "first.h5", "--chunk", 5, "--force", *options)
                report = self.h5pack_json("export", "first.h5", "-o", "out", "--force")[0]
                self.assertEqual((report["images"], report["left_out"], report["notes"]), (36, [], []))
                self.assertEqual(sorted(report["folders"]), sorted(["cat", "dog", "an \u00f6tter"]))
                self.h5pack("folder", "out", "-o", "second.h5", "--chunk", 5, "--force", *options)
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

        self.h5pack("export", "photos.h5", "-o", "linked")
        (self.dir / "out" / "cat" / "mine.txt").write_text("mine")
        (self.dir / "linked" / "link").symlink_to(self.dir / "photos")
        (self.dir / "to-out").symlink_to(self.dir / "expected")
        for output, said, way_out in (("out", "cat/mine.txt", "--force does not replace it; remove it"),
                                      ("linked", "'link'", "remove it"),
                                      ("photos", ".jpg", "name another folder with -o"),
                                      ("photos.h5", "photos.h5", "exists"), ("to-out", "to-out", "exists")):
            self.assert_refused(["export", "others.h5", "--force", "-o", output], 1, [output, said], way_out)
        # A run that fails leaves the old one.
        whole = tree(self.dir / "expected")
        offset = chunk_offset(self.dir / "others.h5")
        (self.dir / "short.h5").write_bytes((self.dir / "others.h5").read_bytes()[:offset])
        self.assertNotEqual(self.run_h5pack("export", "short.h5", "-o", "expected", "--force").returncode, 0)
        self.assertEqual(tree(self.dir / "expected"), whole)

    def test_pictures_are_those_of_the_file(self):
        self.pack_photos("--chunk", 3, per_class=7, output="a.h5")
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
        self.assertEqual([line["path"] for line in table], [f"{p.parent.name}/{p.name}" for p in pictures])
        self.assertEqual([line["source_index"] for line in table], [str(i) for i in range(14)])
        self.assertEqual([line["label"] for line in table], ["cat"] * 7 + ["dog"] * 7)

    def test_the_table_packs_again(self):
        sources.write_cifar10(self.dir / "cifar", per_batch=4)
        self.h5pack("cifar", "cifar", "-o", "packed")
        self.h5pack("export", "packed/train.h5", "-o", "out")
        self.h5pack("csv", "out/samples.csv", "-o", "again.h5")
        self.assert_same_datasets("packed/train.h5", "again.h5")

    def test_attribute_tables_and_fields_come_as_csv(self):
        attributes, partition, identity, landmarks, _ = sources.write_celeba(self.dir / "celeba", 20, size=(22, 18))
        self.h5pack("celeba", "celeba", "-o", "packed")
        self.h5pack("export", "packed/train.h5", "-o", "out")
        rows = np.flatnonzero(partition == 0)
        table = self.table("out")
        self.assertEqual(list(table[0])[:41], ["path", *sources.CELEBA_ATTRIBUTES])
        self.assertEqual([[int(line[name]) for name in sources.CELEBA_ATTRIBUTES] for line in table],
                         attributes[rows].tolist())
        self.assertEqual([int(line["identity"]) for line in table], identity[rows].tolist())
        self.assertEqual([[int(line[f"landmarks_{i}"]) for i in range(10)] for line in table], landmarks[rows].tolist())
        self.assertEqual(sorted(p.name for p in (self.dir / "out").iterdir()),
                         [f"{i:06d}.png" for i in range(len(rows))] + ["samples.csv"])

    def test_foreign_files(self):
        rgba = np.random.default_rng(3).integers(0, 256, (9, 8, 6, 4), np.uint8)
        weights = np.array([0.1, -1e300, 5e-324, 1 / 3, 0, 1, 2, 3, np.pi])
        self.write_h5("f.h5", data={"data": rgba.transpose(0, 3, 1, 2), "chunks": (2, 4, 3, 6), "compression": "gzip"},
                      label=np.array([3, 11, 3, 3, 11, 0, 0, 11, 3], np.int32), weights=weights,
                      masks=np.zeros((9, 8, 9), np.uint8))
        report = self.h5pack_json("export", "f.h5", "-o", "out", "--layout", "nchw")[0]
        self.assertEqual(report["folders"], ["00", "03", "11"])
        self.assertEqual(report["left_out"], ["masks"])
        self.assertEqual(len(report["notes"]), 1)
        for i, folder in enumerate(("03", "11", "03", "03", "11", "00", "00", "11", "03")):
            with Image.open(self.dir / "out" / folder / f"{i:06d}.png") as image:
                np.testing.assert_array_equal(np.asarray(image), rgba[i])
        self.assertEqual([float(line["weights"]) for line in self.table("out")], weights.tolist())

    def test_labels_that_are_no_classes(self):
        self.write_h5("f.h5", images=np.stack([picture(i, 8, 8) for i in range(3)]), labels=np.array([-1, 10**12, 4]))
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
        self.assertEqual([line["label"] for line in self.table("out")], ["a/b", 'with "quotes", and\nlines', ".."])
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
        self.pack_photos("--chunk", 4, per_class=8, output="a.h5")

    def test_outputs_that_are_not_new(self):
        (self.dir / "out").mkdir()
        (self.dir / "file").write_text("here first")
        (self.dir / "half.partial").mkdir()
        (self.dir / "half.partial" / "x").write_text("somebody's")
        for output, said, way_out in (("out", "'out' exists", "new folder"), ("out/", "'out' exists", "new folder"),
                                      ("file", "'file' exists", "new folder"), ("half", "half.partial", "remove it"),
                                      ("no/such/place", "no/such/place", "make it first")):
            self.assert_refused(["export", "a.h5", "-o", output], 1, [said], way_out)
        for arguments in (["a.h5"], ["-o", "out"], ["a.h5", "-o", ""], ["a.h5", "-o", "new", "--threads", "5000"]):
            self.assertEqual(self.run_h5pack("export", *arguments).returncode, 2, arguments)

    def test_damaged_pictures_are_not_exported(self):
        flip(self.dir / "a.h5", chunk_offset(self.dir / "a.h5", 2) + 5, 4)
        self.assert_refused(["export", "a.h5", "-o", "out"], 1, ["a.h5", "chunk 2 (rows 8 to 11)"], "digest")

    def test_channels_that_are_no_png(self):
        self.write_h5("f.h5", images=np.zeros((3, 8, 8, 2), np.uint8))
        self.assert_refused(["export", "f.h5", "-o", "out", "--layout", "nhwc"], 1, ["2 channels"], "1, 3 and 4")

    def test_files_that_may_not_grow(self):
        before = tree(self.dir)
        self.assert_fails(["export", "a.h5", "-o", "out"], "^h5pack: cannot write 'out.partial/.*free some space",
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700)))
        self.assertEqual(tree(self.dir), before)


@under_strace.required
class FaultTest(CliTest):
    """Every call that makes a folder or file fails once: one line, and nothing is left behind."""

    def setUp(self):
        super().setUp()
        self.pack_photos(per_class=2, height=8, width=8, output="a.h5")

    def inject(self, *injections):
        """What happens to an export when these things happen to its calls."""
        options = [word for each in injections for word in ("-e", f"inject={each}")]
        return self.traced(options, "export", "a.h5", "-o", "out", "--quiet")

    def test_failures_leave_nothing(self):
        before = tree(self.dir)
        for call, count in (("mkdir", 3), ("syncfs", 1), ("renameat2", 1)):
            for number in range(1, count + 1):
                with self.subTest(call, number=number):
                    result, calls = self.inject(f"{call}:error=EIO:when={number}")
                    self.assertIn("INJECTED", calls)
                    self.assert_one_line(result, 1, "out")
                    self.assertEqual(tree(self.dir), before)

    def test_what_a_killed_export_left_is_removed_by_the_next(self):
        for call, number in (("mkdir", 2), ("mkdir", 3), ("syncfs", 1), ("renameat2", 1)):
            with self.subTest(call, number=number):
                result, calls = self.inject(f"{call}:signal=KILL:when={number}")
                if "SIGKILL" not in calls:
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
        result, calls = self.inject("fsync:error=EIO", "unlinkat,rmdir:error=EACCES")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(calls, r"fsync.*INJECTED")
        self.assertTrue(any((self.dir / "out.partial").iterdir()))
        self.h5pack("export", "a.h5", "-o", "out")
        self.assertFalse((self.dir / "out.partial").exists())

    def test_a_running_export_is_not_touched(self):
        process = subprocess.Popen(
            ["strace", "-f", "-o", os.devnull, "-e", "inject=mkdir:delay_enter=3000000:when=3", H5PACK, "export",
             "a.h5", "-o", "out", "--quiet"],
            cwd=self.dir, env=under_strace.environment(), stderr=subprocess.PIPE, text=True)
        try:
            deadline = time.monotonic() + 20
            while not (self.dir / "out.partial" / "cat").exists() and process.poll() is None:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            if process.poll() is not None:
                self.skipTest("strace cannot trace here")
            self.assert_fails(["export", "a.h5", "-o", "out"], "out.partial' is in use by another process")
        finally:
            _, messages = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, messages)
        self.assertTrue((self.dir / "out" / "samples.csv").exists())

    def test_a_signal_leaves_nothing(self):
        before = tree(self.dir)
        result, calls = self.inject("mkdir:signal=TERM:when=3")
        self.assertIn("SIGTERM", calls)
        self.assertEqual(result.returncode, 143, result.stderr)
        self.assertRegex(result.stderr, "SIGTERM; the unfinished folder was removed")
        self.assertEqual(tree(self.dir), before)
