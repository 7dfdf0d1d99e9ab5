"""h5pack append to encoded images: the bytes of the old file, then those of the source; a whole output, or none."""

import json
import unittest

import h5py
import numpy as np

import under_strace
from support import SKIPPED, CliTest, flip, make_class_folder, tree, write_picture


class EncodedAppendTest(CliTest):
    def setUp(self):
        super().setUp()
        make_class_folder(self.dir / "one", ["cat", "dog", "eel"], 5, height=24, width=20)
        write_picture(self.dir / "one" / "cat" / "wide.png", 50, 11, 70)
        make_class_folder(self.dir / "two", ["cat", "eel"], 3, height=31, width=17, first_seed=100)
        write_picture(self.dir / "two" / "eel" / "tall.webp", 60, 45, 9, lossless=True)
        self.h5pack("folder", "one", "-o", "old.h5", "--store", "encoded", "--seed", 3)
        self.append = ["append", "old.h5", "folder", "two", "-o", "new.h5"]

    def images(self, name):
        """Bytes, label and source_index of each row."""
        with h5py.File(self.dir / name) as file:
            data, ends = file["images/data"][:], file["images/indptr"][:]
            return [(data[ends[row]:ends[row + 1]].tobytes(), int(file["labels"][row]), int(file["source_index"][row]))
                    for row in range(len(ends) - 1)]

    def files(self, folder):
        """As images() of a folder packed in the order of the source, with the labels of the old file."""
        paths = sorted(path for path in (self.dir / folder).rglob("*") if path.is_file())
        return [(path.read_bytes(), ["cat", "dog", "eel"].index(path.parent.name), 16 + i)
                for i, path in enumerate(paths)]

    def test_rows_of_the_file_come_first(self):
        before = tree(self.dir)
        self.assertIn("23 encoded images", self.h5pack(*self.append))
        after = tree(self.dir)
        after.pop("new.h5")
        self.assertEqual(after, before)
        self.h5pack("verify", "new.h5")
        self.assertEqual(self.images("new.h5"), self.images("old.h5") + self.files("two"))
        with h5py.File(self.dir / "new.h5") as new, h5py.File(self.dir / "old.h5") as old:
            np.testing.assert_array_equal(new["sample_digests"][:16], old["sample_digests"])
            np.testing.assert_array_equal(new["images/sizes"][:16], old["images/sizes"])
            self.assertEqual(list(new["images/data"].attrs["class_counts"]), [9, 5, 9])
            self.assertEqual((new.attrs["order"], new.attrs["chunkio_format"]), (b"source", 4))
            step, = json.loads(new.attrs["options"])["appended"]
            self.assertEqual((step["source"], step["first_source_row"]), ({"kind": "folder", "path": "two"}, 16))
            data = new["images/data"].attrs
            mean = data["mean"], data["std"], data["source_sizes"]
        # The statistics are those of one pack of all.
        for path in (self.dir / "two").rglob("*.*"):
            path.rename(self.dir / "one" / path.parent.name / ("z" + path.name))
        self.h5pack("folder", "one", "-o", "all.h5", "--store", "encoded")
        with h5py.File(self.dir / "all.h5") as file:
            np.testing.assert_allclose(mean[0], file["images/data"].attrs["mean"])
            np.testing.assert_allclose(mean[1], file["images/data"].attrs["std"])
            self.assertEqual(sorted(mean[2].reshape(-1).tolist()), sorted(file["images/data"].attrs["source_sizes"].reshape(-1).tolist()))

    def test_shuffled_and_twice(self):
        self.h5pack(*self.append, "--order", "shuffled", "--seed", 5)
        expected = sorted(self.images("old.h5") + self.files("two"))
        self.assertEqual(sorted(self.images("new.h5")), expected)
        self.assertNotEqual(self.images("new.h5")[:16], self.images("old.h5"))
        self.h5pack("append", "new.h5", "folder", "two", "-o", "newer.h5")
        self.h5pack("verify", "newer.h5")
        self.assertEqual(self.images("newer.h5")[:23], self.images("new.h5"))
        self.assertEqual([source for _, _, source in self.images("newer.h5")[23:]], list(range(23, 30)))

    def test_the_recorded_limit_holds(self):
        self.h5pack("folder", "one", "-o", "old.h5", "--store", "encoded", "--max-side", 30, "--force")
        output = self.h5pack_json(*self.append)[0]["outputs"][0]
        self.assertEqual(output["images"], 23)
        with h5py.File(self.dir / "new.h5") as file:
            self.assertLessEqual(file["images/sizes"][:].max(), 30)

    def test_damage(self):
        (self.dir / "two" / "cat" / "001.jpg").write_bytes(b"no image")
        self.assert_refused(self.append, 1, ["two/cat/001.jpg"], "skip")
        self.h5pack_json(*self.append, "--on-error", "skip", code=SKIPPED)
        self.assertEqual(len(self.images("new.h5")), 22)
        # A row of the file is never skipped.
        (self.dir / "new.h5").unlink()
        with h5py.File(self.dir / "old.h5") as file:
            place = file["images/data"].id.get_offset() + int(file["images/indptr"][5]) - 2
        flip(self.dir / "old.h5", place)
        self.assert_refused([*self.append, "--on-error", "skip"], 1, ["row 4 of old.h5"], "again|repair")
        self.assertFalse((self.dir / "new.h5").exists())

    def test_what_is_refused(self):
        make_class_folder(self.dir / "three", ["cow"], 2)
        self.assert_refused(["append", "old.h5", "folder", "three", "-o", "new.h5"], 1, ["'cow'"], "'cat', 'dog'")
        self.assert_refused([*self.append, "--resize", "8x8"], 2, ["--resize"], "leave it out")
        self.assert_refused(["append", "old.h5", "--decode", "16", *self.append[2:]], 1, ["old.h5"], "repack --decode")
        self.assert_refused([*self.append[:-1], "old.h5", "--force"], 1, ["'old.h5'"], "-o|--force|another")

    def test_complete_files(self):
        self.h5pack(*self.append)
        self.assertIn("complete already, 23 encoded images|complete already, 23 images".split("|")[1],
                      self.h5pack(*self.append, "--resume"))

    @under_strace.required
    def test_killed_at_every_change(self):
        killed, complete = self.assert_whole_or_absent_when_killed(
            "new.h5", [*self.append, "--threads", 1, "--quiet"])
        self.assertGreater(killed, complete)


if __name__ == "__main__":
    unittest.main()
