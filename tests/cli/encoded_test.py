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
                              (["--chunk-bytes", "1MiB"], "--chunk-bytes"),
                              (["--interpolation", "bicubic"], "--interpolation"),
                              (["--out-layout", "nchw"], "--out-layout")):
            self.assert_refused(["folder", "photos", "-o", "a.h5", "--store", "encoded", *options], 2, [part], "raw")
        self.h5pack("folder", "photos", "-o", "a.h5", "--store", "encoded")
        self.assert_refused(["stream", "a.h5"], 1, ["a.h5"], "decode")
        self.assert_refused(["stream", "a.h5", "--decode", "x"], 2, ["--decode"], "224")
        self.assert_refused(["stream", "a.h5", "--crop", "whole"], 2, ["--crop"], "--decode")
        self.h5pack("repack", "a.h5", "-o", "raw.h5", "--decode", "16")
        self.assert_refused(["stream", "raw.h5", "--decode", "16"], 2, ["raw.h5", "--decode"], "encoded")
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

    # ---- --max-side ----

    def encoded(self, path):
        """The bytes, sizes and orientations of all images."""
        with h5py.File(self.dir / path) as file:
            group = file["images"]
            data, ends, sizes = group["data"][:].tobytes(), group["indptr"][:], group["sizes"][:]
            turned = group["orientations"][:] if "orientations" in group else [1] * len(sizes)
        return [(data[ends[i]:ends[i + 1]], tuple(sizes[i]), turned[i]) for i in range(len(sizes))]

    def pixels(self, encoded):
        with Image.open(io.BytesIO(encoded)) as image:
            return np.asarray(image.convert("RGB")).astype(float)

    def test_larger_images_are_resized(self):
        photos = self.photos()
        side = 50
        output = self.h5pack_json("folder", "photos", "-o", "a.h5", "--store", "encoded", "--order", "source",
                                  "--max-side", side, "--quality", 95)[0]["outputs"][0]
        listed = sorted(path for path in photos.rglob("*") if path.is_file())
        resized = 0
        stored = self.encoded("a.h5")
        for path, (encoded, size, _) in zip(listed, stored):
            with Image.open(path) as image:
                width, height = image.size
                original = image.convert("RGB")
            if max(height, width) <= side:
                self.assertEqual(encoded, path.read_bytes())
                continue
            resized += 1
            wanted = (side, int(width * side / height + 0.5)) if height >= width else (int(height * side / width + 0.5), side)
            self.assertEqual(size, wanted)
            with Image.open(io.BytesIO(encoded)) as image:
                self.assertEqual((image.format, image.size), ("JPEG", wanted[::-1]))
                # Tables of quality 95, as libjpeg computes them.
                reference = io.BytesIO()
                original.save(reference, "JPEG", quality=95)
                self.assertEqual(image.quantization, Image.open(reference).quantization)
            averaged = np.asarray(original.resize(wanted[::-1], Image.BOX)).astype(float)
            self.assertLess(np.abs(self.pixels(encoded) - averaged).mean(), 4, path)
        self.assertEqual((output["images"], output["resized_images"]), (24, resized))
        self.assertTrue(3 < resized < 20)
        self.h5pack("verify", "a.h5")
        # Means are of what is stored, sizes of what was there.
        pixels = np.concatenate([self.pixels(encoded).reshape(-1, 3) for encoded, _, _ in stored]) / 255
        info = self.h5pack_json("info", "a.h5")[0]
        np.testing.assert_allclose(info["statistics"]["mean"], pixels.mean(0), atol=1e-6)
        np.testing.assert_allclose(info["statistics"]["std"], pixels.std(0), atol=1e-6)
        self.assertEqual((info["options"]["max_side"], info["options"]["quality"]), (side, 95))
        self.assertEqual(info["encoded"]["max_width"], 50)
        self.assertEqual(info["source_sizes"]["max_width"], 90)
        self.assertIn("larger ones were resized to 50 pixels a side (JPEG, quality 95)", self.h5pack("info", "a.h5"))
        self.assertIn(f"resized {resized} images to at most 50 pixels", self.h5pack(
            "folder", "photos", "-o", "b.h5", "--store", "encoded", "--order", "source", "--max-side", side, "--quality",
            95, "--threads", 3))
        self.assertEqual(self.encoded("b.h5"), stored)
        self.h5pack("stream", "a.h5", "--decode", 24)

    def test_quality_counts_and_both_options_are_checked(self):
        self.photos()
        sizes = []
        for quality in (20, 100):
            self.h5pack("folder", "photos", "-o", f"{quality}.h5", "--store", "encoded", "--max-side", 30, "--quality",
                        quality)
            sizes.append(sum(len(encoded) for encoded, _, _ in self.encoded(f"{quality}.h5")))
        self.assertLess(1.2 * sizes[0], sizes[1])
        pack = ["folder", "photos", "-o", "a.h5"]
        self.assert_refused([*pack, "--max-side", 30], 2, ["--max-side"], "--store encoded")
        for options, name in ((["--max-side", 0], "--max-side"), (["--max-side", 65501], "--max-side"),
                              (["--max-side", "x"], "--max-side"), (["--max-side", 30, "--quality", 0], "--quality"),
                              (["--max-side", 30, "--quality", 101], "--quality"), (["--quality", 50], "--max-side")):
            self.assert_refused([*pack, "--store", "encoded", *options], 2, [name], r"\d|--max-side")
        self.assertIn("at most", self.h5pack(*pack, "--store", "encoded", "--max-side", 30, "--dry-run"))

    def test_what_resizing_makes_of_unusual_images(self):
        folder = self.dir / "photos" / "a"
        folder.mkdir(parents=True)
        rgb = picture(3, 60, 80)
        alpha = np.dstack([rgb, np.full((60, 80), 7, np.uint8)])
        Image.fromarray(rgb).convert("CMYK").save(folder / "cmyk.jpg", quality=95)
        Image.fromarray(alpha).save(folder / "alpha.png")
        Image.fromarray(rgb[..., 0]).save(folder / "gray.png")
        Image.fromarray((rgb[..., 0].astype(np.uint16) << 8) + 99).save(folder / "sixteen.png")
        Image.fromarray(rgb).quantize(64).save(folder / "palette.png")
        Image.fromarray(rgb).save(folder / "thin.png")
        Image.fromarray(picture(4, 2, 400)).save(folder / "thin.png")
        exif = Image.Exif()
        exif[274] = 6
        Image.fromarray(rgb).save(folder / "turned.jpg", quality=95, exif=exif)
        for mode in ("ignore", "apply"):
            self.h5pack("folder", "photos", "-o", "a.h5", "--store", "encoded", "--order", "source", "--max-side", 40,
                        "--quality", 95, "--orientation", mode, "--force")
            stored = dict(zip(sorted(path.name for path in folder.iterdir()), self.encoded("a.h5")))
            self.assertEqual({turned for _, _, turned in stored.values()}, {1})
            self.assertEqual(stored["thin.png"][1], (1, 40))
            for name, (encoded, size, _) in stored.items():
                with Image.open(io.BytesIO(encoded)) as image, Image.open(folder / name) as source:
                    self.assertEqual((image.mode, image.getexif().get(274)), ("RGB", None), name)
                    if name == "sixteen.png":
                        wanted = np.repeat(rgb[..., :1], 3, -1)
                    else:
                        wanted = np.asarray(source.convert("RGB"))
                if mode == "apply" and name == "turned.jpg":
                    wanted = np.rot90(wanted, -1)
                height, width = wanted.shape[:2]
                self.assertEqual(max(size), 40)
                self.assertEqual(height > width, size[0] > size[1])
                wanted = np.asarray(Image.fromarray(wanted).resize(size[::-1], Image.BOX)).astype(float)
                self.assertLess(np.abs(self.pixels(encoded) - wanted).mean(), 6, name)

    # ---- Shards ----

    def test_shards_are_the_file_of_one_run(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 40, height=30, width=41)
        # Row groups have 4 MiB: only noise of some size makes several of them.
        random = np.random.default_rng(2)
        for i in range(12):
            Image.fromarray(random.integers(0, 256, (700, 800, 3), np.uint8)).save(self.dir / "photos" / "cat" / f"{i}.png")
        pack = ["folder", "photos", "--store", "encoded", "--seed", 3]
        for options in ([], ["--order", "source"]):
            self.h5pack(*pack, *options, "-o", "whole.h5", "--force")
            whole = self.encoded("whole.h5")
            order = self.h5pack_json("stream", "whole.h5", "--decode", 16, "--digest")[0]
            self.assertGreater(order["row_groups"], 3)
            for count in (1, 2, 3, 20):
                with self.subTest(options=options, count=count):
                    for i in range(count):
                        self.h5pack(*pack, *options, "-o", "part.h5", "--shard", f"{i}/{count}", "--force")
                    names = [f"part-{i:05d}-of-{count:05d}.h5" for i in range(count)]
                    parts = [self.encoded(name) for name in names]
                    self.assertEqual(sum(parts, []), whole)
                    self.assertTrue(all(parts))
                    pattern = f"part-*-of-{count:05d}.h5"
                    streamed = self.h5pack_json("stream", pattern, "--decode", 16, "--digest")[0]
                    self.assertEqual(streamed["pixel_digest"], order["pixel_digest"])
                    if count <= order["row_groups"]:
                        self.assertEqual(streamed["order_digest"], order["order_digest"])
                    self.h5pack("verify", pattern)
                    info = self.h5pack_json("info", pattern)[0]
                    self.assertEqual((info["num_samples"], len(info["shards"])), (92, count))
                    one = self.h5pack_json("info", names[-1])[0]
                    self.assertEqual((one["shard"]["index"], one["shard"]["count"]), (count - 1, count))
        self.assert_refused([*pack, "-o", "x.h5", "--shard", "0/93"], 2, ["92 images", "93 shards"], "at most 92")
        # A shard that was packed otherwise does not belong to them.
        self.h5pack(*pack, "-o", "part.h5", "--shard", "0/2", "--max-side", 50, "--force")
        self.assert_refused(["info", "part-*-of-00002.h5"], 1, ["part-00001-of-00002.h5"], "does not belong")

    def test_shards_without_the_images_that_cannot_be_packed(self):
        photos = self.photos()
        for name in ("cat/000.jpg", "dog/003.jpg", "dog/wide.webp"):
            (photos / name).write_bytes((photos / name).read_bytes()[:150])
        skipped = []
        for i in range(3):
            code = self.run_h5pack("folder", "photos", "-o", "part.h5", "--store", "encoded", "--shard", f"{i}/3",
                                   "--on-error", "skip", "--report", "bad.jsonl").returncode
            lines = (self.dir / f"bad-{i:05d}-of-00003.jsonl").read_text().splitlines()
            self.assertEqual(code, SKIPPED if lines else 0)
            skipped += [json.loads(line)["path"].rpartition("photos/")[2] for line in lines]
        self.assertEqual(sorted(skipped), ["cat/000.jpg", "dog/003.jpg", "dog/wide.webp"])
        self.assertEqual(self.h5pack_json("info", "part-*-of-00003.h5")[0]["num_samples"], 21)
        self.h5pack("repack", "part-*-of-00003.h5", "-o", "one.h5")
        parts = [one for i in range(3) for one in self.encoded(f"part-{i:05d}-of-00003.h5")]
        self.assertEqual(self.encoded("one.h5"), parts)


if __name__ == "__main__":
    import unittest

    unittest.main()
