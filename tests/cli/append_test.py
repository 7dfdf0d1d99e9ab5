"""h5pack append: the rows of a file, then those of another source; the file itself is not touched."""

import json
import os

import h5py
import numpy as np

import sources
from h5_contents import datasets_and_attributes
from support import SKIPPED, CliTest, arrays, chunk_offset, flip, make_class_folder, tree, write_picture


class AppendTest(CliTest):
    def read(self, name):
        """Datasets and attributes of a file, which must also be sound."""
        self.h5pack("verify", name, "--quiet")
        return datasets_and_attributes(self.dir / name)

    def make(self, *options, second=("cat", "eel")):
        make_class_folder(self.dir / "one", ["cat", "dog", "eel"], 7, height=24, width=20)
        make_class_folder(self.dir / "two", second, 4, height=24, width=20, first_seed=100)
        self.h5pack("folder", "one", "-o", "old.h5", "--chunk", 4, "--seed", 3, *options)

    def reference(self, folder, *options):
        """What packing the second source alone gives."""
        self.h5pack("folder", folder, "-o", "alone.h5", "--order", "source", "--force", *options)
        return self.read("alone.h5")

    def assert_appended(self, new, old, alone, names=("cat", "dog", "eel")):
        """`new` has the rows of `old`, then those of `alone`, in whatever order it says."""
        found, said, _ = new
        count = len(old[0]["images"])
        first = int(old[0]["source_index"].max()) + 1
        expected = np.concatenate([old[0]["source_index"], alone[0]["source_index"] + first])
        self.assertEqual(sorted(found["source_index"]), sorted(expected))
        self.assertEqual([name.decode() for name in said["class_names"]], list(names))
        old_rows = {source: row for row, source in enumerate(old[0]["source_index"])}
        alone_rows = {source: row for row, source in enumerate(alone[0]["source_index"])}
        for row, source in enumerate(found["source_index"]):
            file, at = (old, old_rows[source]) if source < first else (alone, alone_rows[source - first])
            np.testing.assert_array_equal(found["images"][row], file[0]["images"][at])
            self.assertEqual(said["class_names"][found["labels"][row]], file[1]["class_names"][file[0]["labels"][at]])
        self.assertEqual(list(said["class_counts"]), np.bincount(found["labels"], minlength=len(names)).tolist())
        scaled = found["images"] / 255
        np.testing.assert_allclose(said["mean"], scaled.mean(axis=(0, 1, 2)))
        np.testing.assert_allclose(said["std"], scaled.std(axis=(0, 1, 2)))
        np.testing.assert_allclose(said["mean_picture_std"], scaled.std(axis=(1, 2)).mean(axis=0), atol=1e-8)
        return count

    def test_numbers_of_source_rows_can_run_out(self):
        self.make()
        with h5py.File(self.dir / "old.h5", "r+") as file:
            file["source_index"][5] = 2**63 - 5
        self.assert_refused(["append", "old.h5", "folder", "two", "-o", "new.h5"], 1, ["old.h5", "source_index"],
                            "write it anew")

    def test_rows_of_the_file_come_first(self):
        self.make()
        before = tree(self.dir)
        out = self.h5pack("append", "old.h5", "folder", "two", "-o", "new.h5")
        self.assertIn("29 images", out)
        after = tree(self.dir)
        after.pop("new.h5")
        self.assertEqual(after, before)
        old, alone, new = self.read("old.h5"), self.reference("two"), self.read("new.h5")
        count = self.assert_appended(new, old, alone)
        for name, values in old[0].items():
            np.testing.assert_array_equal(new[0][name][:count], values, name)
        self.assertEqual(list(new[0]["source_index"][count:]), list(range(21, 29)))
        self.assertEqual(new[2][0], 4)  # chunks as they were
        self.assertEqual(new[1]["order"], b"source")
        self.assertEqual(list(new[1]["source_sizes"]), [24, 20, 29])
        options = json.loads(new[1]["options"])
        self.assertEqual(options["source"], {"kind": "folder", "path": "one"})
        self.assertEqual(options["appended"][0]["source"], {"kind": "folder", "path": "two"})
        self.assertEqual(options["appended"][0]["first_source_row"], 21)

    def test_shuffled_mixes_all_and_any_number_of_times(self):
        self.make()
        for chunk in (3, 50):
            self.h5pack("append", "old.h5", "folder", "two", "-o", "new.h5", "--order", "shuffled", "--seed", 5,
                        "--chunk", chunk, "--force")
            new = self.read("new.h5")
            count = self.assert_appended(new, self.read("old.h5"), self.reference("two"))
            self.assertNotEqual(list(new[0]["source_index"][:count]), list(self.read("old.h5")[0]["source_index"]))
            self.assertEqual((new[1]["order"], new[1]["seed"]), (b"shuffled", 5))
        make_class_folder(self.dir / "three", ["dog"], 3, height=24, width=20, first_seed=300)
        self.h5pack("append", "new.h5", "folder", "three", "-o", "newer.h5")
        newer = self.read("newer.h5")
        self.assert_appended(newer, new, self.reference("three"))
        self.assertEqual([step["first_source_row"] for step in json.loads(newer[1]["options"])["appended"]], [21, 29])

    def test_damaged_rows_are_known_by_name(self):
        self.make()
        self.h5pack("append", "old.h5", "folder", "two", "-o", "new.h5")
        expected = [int(arrays(self.dir / "new.h5")["source_index"][20])]  # the row whose first byte it is
        flip(self.dir / "new.h5", chunk_offset(self.dir / "new.h5", 5))
        report, = self.h5pack_json("verify", "new.h5", "--quiet", code=4)
        names = [f"one/{name}/{i:03d}.jpg" for name in ("cat", "dog", "eel") for i in range(7)]
        names += [f"two/{name}/{i:03d}.jpg" for name in ("cat", "eel") for i in range(4)]
        self.assertEqual(report["damaged"][0]["files"], [names[source] for source in expected])
        self.assert_refused(["verify", "new.h5", "--against", "one"], 1, ["new.h5", "append"], "--against")

    def test_what_the_file_was_packed_with_holds(self):
        self.make("--resize", "12x10", "--interpolation", "nearest", "--out-layout", "nchw", "--channels", "gray")
        self.h5pack("append", "old.h5", "folder", "two", "-o", "new.h5")
        alone = self.reference("two", "--resize", "12x10", "--interpolation", "nearest", "--out-layout", "nchw",
                               "--channels", "gray")
        new = self.read("new.h5")
        self.assertEqual(new[0]["images"].shape, (29, 1, 12, 10))
        np.testing.assert_array_equal(new[0]["images"][21:], alone[0]["images"])
        # Unless something else is asked for that gives the same size.
        self.h5pack("append", "old.h5", "folder", "two", "-o", "area.h5", "--resize", "12x10", "--interpolation", "area")
        self.assertTrue((self.read("area.h5")[0]["images"][21:] != alone[0]["images"]).any())

    def test_files_that_others_wrote_and_compressed_ones(self):
        self.make()
        self.write_h5("foreign.h5", imgs=self.read("old.h5")[0]["images"], labels=np.arange(21) % 2)
        samples = make_class_folder(self.dir / "photos", ["x"], 3, height=24, width=20, first_seed=200)
        (self.dir / "list.csv").write_text("path,label\n" + "".join(f"{path},5\n" for path, _ in samples))
        self.h5pack("append", "foreign.h5", "csv", "list.csv", "-o", "new.h5")
        found, _, _ = self.read("new.h5")
        self.assertEqual(list(found["labels"]), [*(i % 2 for i in range(21)), 5, 5, 5])
        self.assertEqual(list(found["source_index"]), list(range(24)))
        np.testing.assert_array_equal(found["images"][:21], self.read("old.h5")[0]["images"])

        self.h5pack("repack", "old.h5", "-o", "small.h5", "--filter", "deflate:6", "--chunk", 5)
        self.h5pack("append", "small.h5", "folder", "two", "-o", "larger.h5")
        self.assert_appended(self.read("larger.h5"), self.read("old.h5"), self.reference("two"))
        self.assert_refused(["append", "small.h5", "folder", "two", "-o", "x.h5", "--order", "shuffled"], 1,
                            ["small.h5", "compressed"], "--filter none")

    def test_attributes_and_splits(self):
        sources.write_celeba(self.dir / "celeba", 30, size=(22, 18))
        self.h5pack("celeba", "celeba", "-o", "packed")
        self.h5pack("append", "packed/val.h5", "celeba", "celeba", "-o", "both.h5", "--split", "test")
        val, test, both = self.read("packed/val.h5"), self.read("packed/test.h5"), self.read("both.h5")
        order = np.argsort(test[0]["source_index"])
        for name in ("images", "labels", "identity"):
            np.testing.assert_array_equal(both[0][name], np.concatenate([val[0][name], test[0][name][order]]), name)
        self.assertEqual(both[1]["split"], b"val")
        np.testing.assert_array_equal(both[1]["attribute_names"], val[1]["attribute_names"])
        self.assertEqual(json.loads(both[1]["options"])["appended"][0]["source"]["split"], "test")
        # Without being told, the split that the file is of.
        self.h5pack("append", "packed/val.h5", "celeba", "celeba", "-o", "twice.h5")
        self.assertEqual(len(self.read("twice.h5")[0]["images"]), 2 * len(val[0]["images"]))
        self.assert_refused(["append", "packed/val.h5", "celeba", "celeba", "-o", "x.h5", "--split", "dev"], 2,
                            ["'dev'", "'train'"], "splits")

    def test_bad_pictures_are_left_out(self):
        self.make()
        (self.dir / "two" / "cat" / "001.jpg").write_bytes(b"no image")
        self.assert_refused(["append", "old.h5", "folder", "two", "-o", "new.h5"], 1, ["two/cat/001.jpg"], "JPEG|decode|picture")
        append = ["append", "old.h5", "folder", "two", "-o", "new.h5", "--on-error", "skip", "--report", "bad.jsonl"]
        self.h5pack_json(*append, code=SKIPPED)
        self.assertEqual(json.loads((self.dir / "bad.jsonl").read_text())["path"], "two/cat/001.jpg")
        new, old = self.read("new.h5"), self.read("old.h5")
        os.unlink(self.dir / "two" / "cat" / "001.jpg")
        alone = self.reference("two")
        np.testing.assert_array_equal(new[0]["images"][:21], old[0]["images"])
        np.testing.assert_array_equal(new[0]["images"][21:], alone[0]["images"])
        self.assertEqual(list(new[0]["source_index"][21:]), [21, 23, 24, 25, 26, 27, 28])
        # All new ones are bad.
        for path in (self.dir / "two").rglob("*.jpg"):
            path.write_bytes(b"no image")
        self.h5pack_json(*append, "--force", code=SKIPPED)
        np.testing.assert_array_equal(self.read("new.h5")[0]["images"], self.read("old.h5")[0]["images"])

    def test_complete_files_and_changed_runs(self):
        self.make()
        append = ["append", "old.h5", "folder", "two", "-o", "new.h5"]
        self.h5pack(*append, "--resume")
        before = tree(self.dir)
        self.assertIn("complete already, 29 images", self.h5pack(*append, "--resume"))
        self.assertEqual(tree(self.dir), before)
        self.assert_refused([*append, "--resume", "--order", "shuffled"], 1, ["new.h5", "--order"], "--force")
        self.h5pack("folder", "one", "-o", "old.h5", "--chunk", 4, "--force")
        self.assert_refused([*append, "--resume"], 1, ["new.h5", "file appended to"], "--force")
        self.h5pack(*append, "--dry-run", "--force")


class RefusedTest(CliTest):
    def setUp(self):
        super().setUp()
        make_class_folder(self.dir / "one", ["cat", "dog"], 4)
        self.h5pack("folder", "one", "-o", "old.h5", "--chunk", 3)

    def refuse(self, old, kind, source, *options, code=1, names, way_out):
        self.assert_refused(["append", old, kind, source, "-o", "new.h5", *options], code, names, way_out)

    def test_classes_that_do_not_agree(self):
        make_class_folder(self.dir / "two", ["cat", "cow"], 2)
        write_picture(self.dir / "flat" / "a.jpg", 1)
        self.h5pack("folder", "flat", "-o", "flat.h5")
        (self.dir / "list.csv").write_text("path,label\none/cat/000.jpg,2\n")
        sources.write_celeba(self.dir / "celeba", 12, size=(32, 32))
        self.refuse("old.h5", "folder", "two", names=["'cow'", "'two'", "'old.h5'"], way_out="'cat', 'dog'")
        self.refuse("old.h5", "folder", "flat", names=["'flat'"], way_out="no labels")
        self.refuse("flat.h5", "folder", "one", names=["'flat.h5'"], way_out="no labels")
        self.refuse("old.h5", "csv", "list.csv", names=["label 2", "list.csv"], way_out="2 classes")
        self.refuse("old.h5", "celeba", "celeba", "--split", "train", names=["table of attributes"], way_out="classes")

    def test_shapes_and_fields_that_do_not_agree(self):
        make_class_folder(self.dir / "two", ["cat"], 2, height=32, width=33)
        self.refuse("old.h5", "folder", "two", names=["32x32", "32x33", "two/cat/000.jpg", "old.h5"], way_out="--resize")
        self.refuse("old.h5", "folder", "two", "--resize", "16x16", code=2, names=["16x16", "32x32"], way_out="--resize")
        self.h5pack("append", "old.h5", "folder", "two", "-o", "resized.h5", "--resize", "32x32")
        self.write_h5("more.h5", images=np.zeros((4, 32, 32, 3), np.uint8), labels=np.zeros(4, np.int64),
                      box=np.zeros((4, 4), np.float32))
        (self.dir / "list.csv").write_text("path,label\none/cat/000.jpg,0\n")
        self.refuse("more.h5", "csv", "list.csv", names=["'box'", "'more.h5'"], way_out="--fields")
        self.write_h5("five.h5", images=np.zeros((4, 32, 32, 5), np.uint8))
        self.refuse("five.h5", "folder", "one", "--layout", "nhwc", names=["5 channels"], way_out="1 or 3")

    def test_outputs_and_inputs(self):
        append = ["append", "old.h5", "folder", "one", "-o"]
        for options in ([], ["--force"], ["--resume"]):
            self.assert_refused([*append, "old.h5", *options], 1, ["'old.h5'"], "-o|--force")
        self.assert_refused([*append, "no/new.h5"], 1, ["no folder 'no'"], "make it first")
        self.refuse("gone.h5", "folder", "one", names=["gone.h5"], way_out="No such file|not found|cannot")
        self.refuse("old.h5", "folder", "gone", names=["gone"], way_out="give a folder|cannot")
        self.refuse("one/cat/000.jpg", "folder", "one", names=["one/cat/000.jpg"], way_out="HDF5")

    def test_usage(self):
        for arguments in ([], ["old.h5"], ["old.h5", "folder"], ["old.h5", "folder", "one"],
                          ["old.h5", "folder", "one", "-o", ""], ["old.h5", "elsewhere", "one", "-o", "new.h5"],
                          ["old.h5", "folder", "one", "-o", "new.h5", "--order", "source"],
                          ["old.h5", "folder", "one", "-o", "new.h5", "--layout", "nchw"],
                          ["old.h5", "folder", "one", "-o", "new.h5", "--report", "x"]):
            self.assertEqual(self.run_h5pack("append", *arguments).returncode, 2, arguments)

    def test_damaged_rows_are_not_copied(self):
        flip(self.dir / "old.h5", chunk_offset(self.dir / "old.h5", 1) + 100, 16)
        self.refuse("old.h5", "folder", "one", names=["old.h5", "chunk 1"], way_out="digest")
