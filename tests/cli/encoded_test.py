"""h5pack --store encoded: files come back byte by byte, and are decoded while they are read."""

import csv
import io
import json
import subprocess

import h5py
import numpy as np
from PIL import Image

from support import H5PACK, SKIPPED, CliTest, make_class_folder, picture, pillow_pixels, tree, write_picture


class EncodedTest(CliTest):
    def photos(self, name="photos"):
        """Images of all formats, in sizes of their own."""
        make_class_folder(self.dir / name, ["cat", "dog"], 8, height=30, width=41)
        for seed in range(6):
            height, width = 20 + 7 * seed, 90 - 11 * seed
            write_picture(self.dir / name / "cat" / f"large{seed}.jpg", 100 + seed, height, width, progressive=seed % 2 == 1)
        write_picture(self.dir / name / "dog" / "flat.png", 200, 33, 21)
        write_picture(self.dir / name / "dog" / "wide.webp", 201, 15, 70, lossless=True)
        return self.dir / name

    def test_files_come_back(self):
        photos = self.photos()
        report = self.h5pack_json("folder", "photos", "-o", "a.h5", "--store", "encoded")[0]["outputs"][0]
        self.assertEqual((report["store"], report["images"], report["skipped_images"]), ("encoded", 24, 0))
        info = self.h5pack_json("info", "a.h5")[0]
        self.assertEqual(info["num_samples"], 24)
        self.assertEqual(info["encoded"]["max_width"], 90)
        self.assertEqual(sum(info["class_counts"] if "class_counts" in info else [14, 10]), 24)
        self.h5pack("verify", "a.h5")
        self.h5pack("export", "a.h5", "-o", "out")
        with open(self.dir / "out" / "samples.csv", newline="") as table:
            names = [row["path"] for row in csv.DictReader(table)]
        listed = sorted(path for path in photos.rglob("*") if path.is_file())
        self.assertEqual(len(names), len(listed))
        contents = sorted(path.read_bytes() for path in listed)
        self.assertEqual(sorted((self.dir / "out" / name).read_bytes() for name in names), contents)
        for name in names:
            magic = (self.dir / "out" / name).read_bytes()[:4]
            self.assertTrue(name.endswith({b"\x89PNG": ".png", b"RIFF": ".webp"}.get(magic, ".jpg")), name)
        # Packed again, they give the same file but for what it says of its source.
        self.h5pack("folder", "out", "-o", "b.h5", "--store", "encoded")
        with h5py.File(self.dir / "a.h5") as a, h5py.File(self.dir / "b.h5") as b:
            for name in ("images/data", "images/indptr", "images/sizes", "labels", "sample_digests"):
                np.testing.assert_array_equal(a[name], b[name], name)

    def test_repacked_and_streamed_pixels_are_pillows(self):
        photos = self.photos()
        self.h5pack("folder", "photos", "-o", "a.h5", "--store", "encoded", "--order", "source")
        self.h5pack("repack", "a.h5", "-o", "raw.h5", "--decode", "16x24", "--crop", "whole", "--order", "source")
        listed = sorted(path for path in photos.rglob("*") if path.is_file())
        with h5py.File(self.dir / "raw.h5") as raw:
            self.assertEqual(raw["images"].shape, (24, 16, 24, 3))
            for row, path in enumerate(listed):
                with Image.open(path) as image:
                    wanted = np.asarray(image.convert("RGB").resize((24, 16), Image.BILINEAR))
                # Before version 13, Pillow resizes some images in the other order.
                self.assertLessEqual(np.abs(raw["images"][row].astype(int) - wanted).max(), 1, path)
        digests = {}
        for crop in ("center", "whole", "random-resized"):
            out = self.h5pack_json("stream", "a.h5", "--decode", 24, "--crop", crop, "--epochs", 2, "--digest")[0]
            self.assertEqual(out["total"]["images"] if "total" in out else 48, 48)
            digests[crop] = json.dumps(out.get("digest"))
        self.h5pack("preview", "a.h5", "--decode", 32, "-o", "sheet.png")
        self.assertGreater(pillow_pixels(self.dir / "sheet.png").size, 0)

    def test_what_cannot_be_stored_is_named_or_skipped(self):
        photos = self.photos()
        cut = (photos / "cat" / "large0.jpg").read_bytes()
        (photos / "cat" / "large0.jpg").write_bytes(cut[: len(cut) // 2])
        Image.fromarray(picture(7)).save(photos / "dog" / "old.bmp")
        self.assert_refused(["folder", "photos", "-o", "a.h5", "--store", "encoded", "--order", "source"], 1,
                            ["large0.jpg"], "cannot decode")
        self.assertFalse((self.dir / "a.h5").exists())
        self.assertFalse((self.dir / "a.h5.partial").exists())
        result = self.run_h5pack("folder", "photos", "-o", "a.h5", "--store", "encoded", "--on-error", "skip",
                                 "--report", "skipped.jsonl")
        self.assertEqual(result.returncode, SKIPPED, result.stderr)
        skipped = [json.loads(line) for line in (self.dir / "skipped.jsonl").read_text().splitlines()]
        self.assertEqual(sorted(line["path"].rpartition("/")[2] for line in skipped), ["large0.jpg", "old.bmp"])
        self.assertIn("BMP", " ".join(line["reason"] for line in skipped))
        self.assertEqual(self.h5pack_json("info", "a.h5")[0]["num_samples"], 23)

    def test_options_of_raw_images_are_refused(self):
        self.photos()
        for options, part in ((["--resize", "32"], "--resize"), (["--center-crop", "8x8"], "--center-crop"),
                              (["--channels", "gray"], "--channels"), (["--chunk", "4"], "--chunk"),
                              (["--resume"], "--resume"), (["--out-layout", "nchw"], "--out-layout")):
            self.assert_refused(["folder", "photos", "-o", "a.h5", "--store", "encoded", *options], 2, [part], "raw")
        self.h5pack("folder", "photos", "-o", "a.h5", "--store", "encoded")
        self.assert_refused(["stream", "a.h5"], 1, ["a.h5"], "decode")
        self.assert_refused(["stream", "a.h5", "--decode", "x"], 2, ["--decode"], "224")
        self.assert_refused(["stream", "a.h5", "--crop", "whole"], 2, ["--crop"], "--decode")
        self.assert_refused(["folder", "photos", "-o", "a.h5", "--store", "encoded"], 1, ["a.h5"], "exists")

    def test_orientation_is_kept_when_asked_for(self):
        exif = Image.Exif()
        exif[274] = 6
        write_picture(self.dir / "photos" / "a" / "turned.jpg", 1, 24, 40, exif=exif)
        for mode, shape in (("apply", (40, 24)), ("ignore", (24, 40))):
            self.h5pack("folder", "photos", "-o", "a.h5", "--store", "encoded", "--orientation", mode, "--force")
            with h5py.File(self.dir / "a.h5") as file:
                self.assertEqual("orientations" in file["images"], mode == "apply")
                np.testing.assert_array_equal(file["images/sizes"][0], (24, 40))
            self.h5pack("repack", "a.h5", "-o", "raw.h5", "--decode", f"{shape[0]}x{shape[1]}", "--crop", "whole", "--force")
            with h5py.File(self.dir / "raw.h5") as raw, Image.open(self.dir / "photos" / "a" / "turned.jpg") as image:
                stored = np.asarray(image.convert("RGB"))
                np.testing.assert_array_equal(raw["images"][0], np.rot90(stored, -1) if mode == "apply" else stored)


if __name__ == "__main__":
    import unittest

    unittest.main()
