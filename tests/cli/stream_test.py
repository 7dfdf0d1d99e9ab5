"""h5pack stream: what it reports, and that what it delivers never depends on how it reads."""

import unittest

import h5py
import numpy as np

from support import CliTest, make_class_folder, picture

KEYS = {"epoch", "images", "batches", "seconds", "images_per_second", "bytes_per_second", "chunks",
        "chunk_loads", "hit_rate", "read_amplification", "stall_fraction", "source", "source_reason",
        "order_digest", "threads", "batch_size", "window_groups", "memory_bytes"}


class StreamTest(CliTest):
    @classmethod
    def pictures(cls, count, nchw=False):
        stacked = np.stack([picture(i) for i in range(count)])
        return stacked.transpose(0, 3, 1, 2) if nchw else stacked

    def pack(self, count=60, chunk=7):
        make_class_folder(self.dir / "photos", ["cat", "dog"], count // 2)
        self.h5pack("folder", "photos", "-o", "photos.h5", "--chunk", chunk)

    def digests(self, *arguments):
        return [(e["order_digest"], e["pixel_digest"])
                for e in self.h5pack_json("stream", *arguments, "--digest")]

    def test_report(self):
        self.pack()
        epochs = self.h5pack_json("stream", "photos.h5", "--epochs", 3, "--batch", 16)
        self.assertEqual([e["epoch"] for e in epochs], [0, 1, 2])
        for epoch in epochs:
            self.assertLessEqual(KEYS, set(epoch))
            self.assertEqual((epoch["images"], epoch["batches"]), (60, 4))
            self.assertEqual(epoch["chunks"], 9)
            self.assertEqual(epoch["chunk_loads"], epoch["chunks"])
            self.assertAlmostEqual(epoch["hit_rate"], 1 - 9 / 60)
            self.assertAlmostEqual(epoch["read_amplification"], 1, places=6)
            self.assertGreater(epoch["seconds"], 0)
            self.assertAlmostEqual(epoch["images_per_second"] * epoch["seconds"], 60, places=3)
            self.assertAlmostEqual(epoch["bytes_per_second"] * epoch["seconds"], 60 * 3072, places=1)
            self.assertGreaterEqual(epoch["stall_fraction"], 0)
            self.assertLessEqual(epoch["stall_fraction"], 1)
            self.assertEqual(epoch["batch_size"], 16)
            self.assertLessEqual(epoch["memory_bytes"], 1 << 30)
            self.assertRegex(epoch["order_digest"], r"^[0-9a-f]{16}$")
            self.assertNotIn("pixel_digest", epoch)

    def test_text(self):
        self.pack()
        text = self.h5pack("stream", "photos.h5", "--epochs", 2)
        for part in ("images/s", "chunk loads", "hit rate", "stall", "source mapped", "60 images"):
            self.assertIn(part, text)
        rows = [line.split() for line in text.splitlines() if line[:5].strip() in ("0", "1", "all")]
        self.assertEqual([row[:2] for row in rows], [["0", "60"], ["1", "60"], ["all", "120"]])
        self.assertNotRegex(self.h5pack("stream", "photos.h5"), r"(?m)^ *all ")

    def test_same_batches_however_they_are_read(self):
        self.pack()
        for order in ("chunk_shuffled", "sequential", "random"):
            with self.subTest(order):
                common = ["photos.h5", "--order", order, "--epochs", 2, "--batch", 8, "--seed", 3,
                          "--window-bytes", "64KiB"]
                runs = [self.digests(*common, "--source", source, "--threads", threads)
                        for source in ("mapped", "scatter", "hdf5") for threads in (1, 2)]
                for run in runs[1:]:
                    self.assertEqual(run, runs[0])

    def test_order_changes_with_seed_and_epoch_and_pixels_do_not(self):
        self.pack()
        digests = self.digests("photos.h5", "--epochs", 3) + self.digests("photos.h5", "--seed", 1)
        self.assertEqual(len({order for order, _ in digests}), 4)
        self.assertEqual(len({pixels for _, pixels in digests}), 1)
        again = self.digests("photos.h5", "--epochs", 3)
        self.assertEqual(again, digests[:3])

    def test_pixel_digest_goes_by_source(self):
        """Files packed in different order or chunks from one source hold the same pictures."""
        self.pack()
        self.h5pack("folder", "photos", "-o", "other.h5", "--order", "source", "--chunk", 16)
        (_, first), (_, other) = self.digests("photos.h5") + self.digests("other.h5")
        self.assertEqual(first, other)
        with h5py.File(self.dir / "other.h5", "r+") as file:
            file["images"][33, 1, 2, 0] ^= 1
        self.assertNotEqual(self.digests("other.h5")[0][1], first)

    def test_sequential_is_file_order(self):
        self.pack()
        digests = self.digests("photos.h5", "--order", "sequential", "--epochs", 2)
        self.assertEqual(digests[0], digests[1])

    def test_drop_last(self):
        self.pack()
        epoch, = self.h5pack_json("stream", "photos.h5", "--batch", 16, "--drop-last")
        self.assertEqual((epoch["images"], epoch["batches"]), (48, 3))

    def test_consume_ms_is_no_stall(self):
        self.pack()
        epoch, = self.h5pack_json("stream", "photos.h5", "--batch", 4, "--consume-ms", 20)
        self.assertGreaterEqual(epoch["seconds"], 15 * 0.020)
        self.assertLess(epoch["stall_fraction"], 0.5)

    def test_memory_budget(self):
        self.pack()
        budget = 8 << 20
        epoch, = self.h5pack_json("stream", "photos.h5", "--batch", 4, "--threads", 1,
                                  "--memory-budget", budget, "--window-bytes", "16KiB")
        self.assertLessEqual(epoch["memory_bytes"], budget)

    def test_chunks_that_cut_pictures(self):
        """As in the chunking of a script many have copied: 218 rows of pixels in chunks of 217."""
        random = np.random.default_rng(1)
        pixels = random.integers(0, 256, (250, 3, 218, 178), dtype=np.uint8)
        with h5py.File(self.dir / "cut.h5", "w") as file:
            file.create_dataset("images", data=pixels, chunks=(100, 3, 217, 178))
            file.create_dataset("labels", data=np.arange(250), maxshape=(None,), chunks=(20000,))
        with h5py.File(self.dir / "whole.h5", "w") as file:
            file["images"] = pixels
            file["labels"] = np.arange(250)
        epoch, = self.h5pack_json("stream", "cut.h5", "--digest")
        self.assertEqual((epoch["source"], epoch["images"]), ("hdf5", 250))
        self.assertEqual((epoch["chunks"], epoch["chunk_loads"]), (3, 3))
        self.assertEqual(epoch["pixel_digest"], self.digests("whole.h5")[0][1])
        # What only libhdf5 can read is refused to others, with the way out.
        for source in ("mapped", "scatter"):
            self.assert_refused(["stream", "cut.h5", "--source", source], 1, ["cut.h5"], r"hdf5|auto")

    def test_foreign_files(self):
        for nchw in (False, True):
            pixels = self.pictures(40, nchw)
            storages = {"contiguous": {}, "chunked": {"chunks": (6, *pixels.shape[1:])},
                        "gzip": {"chunks": (6, *pixels.shape[1:]), "compression": "gzip"},
                        "extendible": {"chunks": (6, *pixels.shape[1:]),
                                       "maxshape": (None, *pixels.shape[1:])}}
            digests = set()
            for name, options in storages.items():
                with h5py.File(self.dir / f"{name}.h5", "w") as file:
                    file.create_dataset("faces", data=pixels, **options)
                epochs = self.h5pack_json("stream", f"{name}.h5", "--digest", "--batch", 7)
                self.assertEqual(epochs[0]["images"], 40, name)
                self.assertEqual(epochs[0]["chunk_loads"], epochs[0]["chunks"], name)
                digests.add(epochs[0]["pixel_digest"])
            self.assertEqual(len(digests), 1, "all hold the same pictures")


if __name__ == "__main__":
    unittest.main()
