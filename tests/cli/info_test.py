"""h5pack info: on files packed here and on files that h5py wrote."""


import h5py
import numpy as np

from support import CliTest, arrays, make_class_folder, picture


class InfoTest(CliTest):
    def test_packed_file(self):
        self.pack_photos("--seed", 7, per_class=10)
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
        for part in ("20 x [32,32,3] uint8", "cat (10), dog (10)", "unfiltered", "nothing to improve", "seed 7"):
            self.assertIn(part, text)

    def test_statistics_of_what_was_packed(self):
        make_class_folder(self.dir / "photos", ["cat"], 6, height=40, width=30)
        make_class_folder(self.dir / "photos", ["dog"], 3, height=20, width=90, first_seed=50)
        self.h5pack("folder", "photos", "-o", "photos.h5", "--resize", "24x16", "--chunk", 4)
        info = self.h5pack_json("info", "photos.h5")[0]
        with h5py.File(self.dir / "photos.h5") as file:
            pictures = file["images"][()] / 255
            self.assertIn(b"mean_picture_std", file["images"].attrs["statistics_definition"])
        statistics = info["statistics"]
        np.testing.assert_allclose(statistics["mean"], pictures.mean(axis=(0, 1, 2)), atol=1e-12)
        np.testing.assert_allclose(statistics["std"], pictures.std(axis=(0, 1, 2)), atol=1e-12)
        np.testing.assert_allclose(statistics["mean_picture_std"], pictures.std(axis=(1, 2)).mean(axis=0), atol=1e-8)
        self.assertEqual(info["source_sizes"], {
            "min_height": 20, "max_height": 40, "min_width": 30, "max_width": 90,
            "most_frequent": [{"height": 40, "width": 30, "images": 6}, {"height": 20, "width": 90, "images": 3}]})
        text = self.h5pack("info", "photos.h5")
        self.assertIn("40x30 (6), 20x90 (3); heights 20 to 40, widths 30 to 90", text)
        self.assertIn("std within an image, on average", text)

    def test_statistics_that_cannot_be_are_refused(self):
        make_class_folder(self.dir / "photos", ["cat"], 4)
        for name, value in (("mean_picture_std", [np.nan] * 3), ("mean_picture_std", [0.1] * 2),
                            ("source_sizes", [32, 32, 5]), ("source_sizes", [32, 32]), ("source_sizes", [33, 32, 4]),
                            ("source_sizes", [32, 32, 0]), ("source_size_range", [32, 31, 32, 32]),
                            ("source_size_range", [0, 32, 32, 32])):
            with self.subTest((name, value)):
                self.h5pack("folder", "photos", "-o", "out.h5", "--force")
                with h5py.File(self.dir / "out.h5", "r+", libver=("v110", "v110")) as file:
                    del file["images"].attrs[name]
                    file["images"].attrs[name] = value
                self.assert_refused(["info", "out.h5"], 1, ["out.h5"], "mean_picture_std|source_size")

    def test_badly_chunked_file(self):
        """The chunking of a script many have copied: it cuts images, and labels are one big chunk."""
        self.write_h5("celeba.h5", labels={"shape": (120,), "dtype": np.int64, "chunks": (120,)},
                      images={"shape": (120, 3, 218, 178), "dtype": np.uint8, "chunks": (100, 3, 217, 178)})
        info = self.h5pack_json("info", "celeba.h5")[0]
        self.assertEqual((info["foreign"], info["layout"]), (True, "nchw"))
        self.assertEqual(info["storage"]["chunk_shape"], [100, 3, 217, 178])
        self.assertEqual(info["storage"]["num_chunks"], 4)
        self.assertTrue(info["advice"])
        text = self.h5pack("info", "celeba.h5")
        self.assertIn("third-party", text)
        self.assertIn("217", text)
        self.assertNotIn("nothing to improve", text)

    def test_contiguous_and_compressed_files(self):
        pictures = np.stack([picture(i) for i in range(20)])
        self.write_h5("plain.h5", pictures=pictures, label=np.arange(20) % 3, boxes=np.zeros((20, 4), np.float32))
        info = self.h5pack_json("info", "plain.h5")[0]
        self.assertEqual(info["images"].strip("/"), "pictures")
        self.assertFalse(info["storage"]["chunked"])
        self.assertEqual([entry["count"] for entry in info["classes"]], [7, 7, 6])
        self.assertIn("boxes", [field["name"] for field in info["fields"]])
        self.assertIn("contiguous", self.h5pack("info", "plain.h5"))

        self.write_h5("packed.h5", images={"data": pictures, "chunks": (5, 32, 32, 3), "compression": "gzip",
                                           "shuffle": True})
        info = self.h5pack_json("info", "packed.h5")[0]
        self.assertEqual(info["storage"]["filters"], ["shuffle", "deflate"])
        self.assertLess(info["storage"]["stored_bytes"], info["storage"]["raw_bytes"])

    def test_a_file_that_is_sorted_by_class(self):
        self.pack_photos("--order", "source", per_class=30, output="sorted.h5")
        packed = arrays(self.dir / "sorted.h5")
        self.write_h5("foreign.h5", images=packed["images"], labels=packed["labels"])
        for name in ("sorted.h5", "foreign.h5"):
            advice = " ".join(self.h5pack_json("info", name)[0]["advice"])
            self.assertRegex(advice, "sorted by class.*h5pack repack, in shuffled order", name)
            self.h5pack("repack", name, "-o", "shuffled.h5", "--order", "shuffled", "--force")
            self.assertNotIn("sorted", " ".join(self.h5pack_json("info", "shuffled.h5")[0]["advice"]), name)
        # A third-party file does not say whether it was shuffled.
        self.write_h5("foreign.h5", images=packed["images"], labels=np.random.default_rng(1).permutation(packed["labels"]))
        self.assertNotIn("sorted", " ".join(self.h5pack_json("info", "foreign.h5")[0]["advice"]))

    def test_labels_that_are_not_taken(self):
        self.write_h5("x.h5", images=np.zeros((6, 8, 8, 3), np.uint8), labels=np.zeros(6, np.float32),
                      targets=(np.arange(6) % 3).astype(np.uint8)[:, None], names=np.array([b"x"] * 6))
        info, = self.h5pack_json("info", "x.h5")
        self.assertIsNone(info["labels"])
        self.assertRegex(info["why_no_labels"], "labels float32 \\[6\\].*targets uint8 \\[6,1\\] looks like labels")
        self.assertEqual(info["left_out"], ["names string [6]"])
        text = " ".join(self.h5pack("info", "x.h5").split())
        self.assertRegex(text, "labels none: labels float32 .* labels \\(--label-field\\) = \"targets\"")
        self.assertIn("left out names string [6]", text)

        info, = self.h5pack_json("info", "x.h5", "--label-field", "targets")
        self.assertEqual(info["labels"], {"name": "targets", "dtype": "int64", "row_shape": []})
        self.assertIsNone(info["why_no_labels"])
        self.assertEqual([entry["count"] for entry in info["classes"]], [2, 2, 2])
