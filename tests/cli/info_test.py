"""h5pack info: on files packed here and on files that h5py wrote."""

import unittest

import h5py
import numpy as np

from support import CliTest, make_class_folder, picture


class InfoTest(CliTest):
    def test_packed_file(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 10)
        self.h5pack("folder", "photos", "-o", "photos.h5", "--seed", 7)
        info = self.h5pack_json("info", "photos.h5")[0]
        self.assertFalse(info["foreign"])
        self.assertEqual(info["shape"], [20, 32, 32, 3])
        self.assertEqual((info["dtype"], info["layout"], info["channel_order"]), ("uint8", "nhwc", "RGB"))
        self.assertEqual((info["order"], info["seed"]), ("shuffled", 7))
        self.assertEqual(info["classes"], [{"name": "cat", "count": 10}, {"name": "dog", "count": 10}])
        self.assertEqual(info["labels"], {"name": "labels", "dtype": "int64", "row_shape": []})
        self.assertIn("source_index", [field["name"] for field in info["fields"]])
        storage = info["storage"]
        self.assertTrue(storage["chunked"])
        self.assertEqual(storage["filters"], [])
        self.assertEqual(storage["chunk_bytes"], int(np.prod(storage["chunk_shape"])))
        self.assertEqual(len(info["statistics"]["mean"]), 3)
        self.assertEqual(info["advice"], [])

        text = self.h5pack("info", "photos.h5")
        for part in ("20 x [32,32,3] uint8", "cat (10), dog (10)", "unfiltered", "nothing to improve",
                     "seed 7"):
            self.assertIn(part, text)

    def test_the_h5py_line_can_be_pasted(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 3)
        self.h5pack("folder", "photos", "-o", "photos.h5")
        text = self.h5pack("info", "photos.h5")
        line = next(l for l in text.splitlines() if "h5py.File(" in l)
        expression = line[line.index("h5py.File("):].replace('"photos.h5"',
                                                             repr(str(self.dir / "photos.h5")))
        with eval(expression) as file:  # our own output, that is the point
            self.assertEqual(file["images"].shape, (6, 32, 32, 3))

    def test_badly_chunked_file(self):
        """The chunking of a script many have copied: it cuts pictures, and labels are one big chunk."""
        with h5py.File(self.dir / "celeba.h5", "w") as file:
            file.create_dataset("images", (120, 3, 218, 178), np.uint8, chunks=(100, 3, 217, 178))
            file.create_dataset("labels", (120,), np.int64, chunks=(120,))
        info = self.h5pack_json("info", "celeba.h5")[0]
        self.assertTrue(info["foreign"])
        self.assertEqual(info["layout"], "nchw")
        self.assertEqual(info["storage"]["chunk_shape"], [100, 3, 217, 178])
        self.assertEqual(info["storage"]["num_chunks"], 4)
        self.assertTrue(info["advice"])
        text = self.h5pack("info", "celeba.h5")
        self.assertIn("foreign", text)
        self.assertIn("217", text)
        self.assertNotIn("nothing to improve", text)

    def test_contiguous_and_compressed_files(self):
        pictures = np.stack([picture(i) for i in range(20)])
        with h5py.File(self.dir / "plain.h5", "w") as file:
            file["pictures"] = pictures
            file["label"] = np.arange(20) % 3
            file["boxes"] = np.zeros((20, 4), np.float32)
        info = self.h5pack_json("info", "plain.h5")[0]
        self.assertEqual(info["images"].strip("/"), "pictures")
        self.assertFalse(info["storage"]["chunked"])
        self.assertEqual([entry["count"] for entry in info["classes"]], [7, 7, 6])
        self.assertIn("boxes", [field["name"] for field in info["fields"]])
        self.assertIn("contiguous", self.h5pack("info", "plain.h5"))

        with h5py.File(self.dir / "packed.h5", "w") as file:
            file.create_dataset("images", data=pictures, chunks=(5, 32, 32, 3), compression="gzip",
                                shuffle=True)
        info = self.h5pack_json("info", "packed.h5")[0]
        self.assertEqual(info["storage"]["filters"], ["shuffle", "deflate"])
        self.assertLess(info["storage"]["stored_bytes"], info["storage"]["raw_bytes"])

    def test_choice_of_dataset_and_layout(self):
        with h5py.File(self.dir / "two.h5", "w") as file:
            file["left"] = np.zeros((5, 8, 8, 3), np.uint8)
            file["deep/right"] = np.zeros((6, 3, 8, 3), np.uint8)
        info = self.h5pack_json("info", "two.h5", "--images", "deep/right", "--layout", "nchw")[0]
        self.assertEqual((info["num_samples"], info["layout"]), (6, "nchw"))
        self.assertEqual((info["channels"], info["height"], info["width"]), (3, 8, 3))


if __name__ == "__main__":
    unittest.main()
