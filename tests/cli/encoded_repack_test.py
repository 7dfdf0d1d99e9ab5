"""h5pack repack to files of encoded images: from pixels, as PNG or JPEG, and from such files, byte by byte."""

import io
import json

import h5py
import numpy as np
from PIL import Image

from support import CliTest, flip, make_class_folder, picture, write_picture


class EncodedRepackTest(CliTest):
    def images(self, name):
        """Bytes, size and orientation of each image; other datasets by name; and what the file says of itself."""
        with h5py.File(self.dir / name) as file:
            group = file["images"]
            data, ends, sizes = group["data"][:].tobytes(), group["indptr"][:], group["sizes"][:]
            turned = group["orientations"][:] if "orientations" in group else np.ones(len(sizes), np.uint8)
            images = [(data[ends[i]:ends[i + 1]], tuple(sizes[i]), turned[i]) for i in range(len(sizes))]
            fields = {key: file[key][:] for key in file if key != "images"}
            return images, fields, json.loads(file.attrs["options"]) if "options" in file.attrs else {}

    def pixels(self, encoded):
        with Image.open(io.BytesIO(encoded)) as image:
            return image.format, np.asarray(image)

    def raw(self, name, shape, **fields):
        values = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
        with h5py.File(self.dir / name, "w") as file:
            file.create_dataset("images", data=values, chunks=(7, *shape[1:]))
            file["labels"] = np.arange(shape[0]) % 3
            for key, field in fields.items():
                file[key] = field
        return values

    # ---- From pixels ----

    def test_png_loses_nothing(self):
        for channels in (1, 3, 4):
            for options in ([], ["--order", "shuffled", "--seed", 2], ["--rows", "3:20,33"]):
                with self.subTest(channels=channels, options=options):
                    values = self.raw("in.h5", (40, 9, 13, channels), boxes=np.arange(160).reshape(40, 4))
                    self.h5pack("repack", "in.h5", "-o", "out.h5", "--encode", "png", "--force", *options)
                    images, fields, said = self.images("out.h5")
                    rows = fields["source_index"]
                    self.assertEqual(len(rows), 18 if "--rows" in options else 40)
                    np.testing.assert_array_equal(fields["labels"], rows % 3)
                    np.testing.assert_array_equal(fields["boxes"][:, 0], 4 * rows)
                    for (encoded, size, turned), row in zip(images, rows):
                        format, pixels = self.pixels(encoded)
                        self.assertEqual((format, size, turned), ("PNG", (9, 13), 1))
                        np.testing.assert_array_equal(pixels, values[row, ..., 0] if channels == 1 else values[row])
                    self.h5pack("verify", "out.h5")
                    rgb = np.repeat(values, 3, -1) if channels == 1 else values[..., :3]
                    info, = self.h5pack_json("info", "out.h5")
                    np.testing.assert_allclose(info["statistics"]["mean"], rgb[rows].mean((0, 1, 2)) / 255, atol=1e-6)
                    np.testing.assert_allclose(info["statistics"]["std"], rgb[rows].std((0, 1, 2)) / 255, atol=1e-6)

    def test_there_and_back(self):
        """Of what h5pack packed nothing is lost, either."""
        make_class_folder(self.dir / "photos", ["cat", "dog"], 12, 33, 40)
        self.h5pack("folder", "photos", "-o", "in.h5")
        before, = self.h5pack_json("info", "in.h5")
        self.h5pack("repack", "in.h5", "-o", "png.h5", "--encode", "png")
        png, = self.h5pack_json("info", "png.h5")
        for key in ("classes", "seed", "order", "source_sizes", "split"):
            self.assertEqual(png[key], before[key], key)
        for key in ("mean", "std", "mean_picture_std"):
            np.testing.assert_allclose(png["statistics"][key], before["statistics"][key], atol=1e-9)
        self.assertEqual((png["options"]["store"], png["options"]["encoded_as"]), ("encoded", "png"))
        self.assertIn("encoded from pixels: png", self.h5pack("info", "png.h5"))
        self.h5pack("repack", "png.h5", "-o", "back.h5", "--decode", "33x40", "--crop", "whole")
        with h5py.File(self.dir / "in.h5") as a, h5py.File(self.dir / "back.h5") as b:
            for name in ("images", "labels", "source_index"):
                np.testing.assert_array_equal(a[name], b[name], name)
        options = self.h5pack_json("info", "back.h5")[0]["options"]
        self.assertFalse({"store", "encoded_as"} & set(options))
        self.assertEqual(options["repacked"][1]["encoded_as"], "png")

    def test_jpeg_has_its_quality(self):
        pictures = np.stack([picture(i, 40, 50) for i in range(12)])
        for channels in (1, 3):
            self.write_h5("in.h5", images=pictures[..., :channels])
            sizes = []
            for quality in (None, 30, 95):
                options = [] if quality is None else ["--quality", quality]
                self.h5pack("repack", "in.h5", "-o", "out.h5", "--encode", "jpeg", "--force", *options)
                images, fields, _ = self.images("out.h5")
                for (encoded, size, _), values in zip(images, pictures):
                    with Image.open(io.BytesIO(encoded)) as image:
                        reference = io.BytesIO()
                        Image.fromarray(values[..., 0] if channels == 1 else values).save(reference, "JPEG",
                                                                                        quality=quality or 90)
                        self.assertEqual((image.format, image.mode), ("JPEG", "L" if channels == 1 else "RGB"))
                        with Image.open(reference) as other:
                            self.assertEqual(image.quantization, other.quantization)
                            np.testing.assert_array_equal(np.asarray(image), np.asarray(other))
                sizes.append(sum(len(encoded) for encoded, _, _ in images))
                stored = np.stack([np.asarray(Image.open(io.BytesIO(one)).convert("RGB")) for one, _, _ in images]) / 255
                info, = self.h5pack_json("info", "out.h5")
                np.testing.assert_allclose(info["statistics"]["mean"], stored.mean((0, 1, 2)), atol=1e-6)
            self.assertTrue(sizes[1] < sizes[0] < sizes[2], sizes)

    def test_windows_of_little_memory(self):
        values = self.raw("in.h5", (300, 64, 64, 3))
        self.h5pack("repack", "in.h5", "-o", "out.h5", "--encode", "png", "--order", "shuffled", "--memory-budget", "6MiB")
        images, fields, _ = self.images("out.h5")
        for (encoded, _, _), row in zip(images, fields["source_index"]):
            np.testing.assert_array_equal(self.pixels(encoded)[1], values[row])

    def test_splits_and_dry_runs(self):
        self.raw("in.h5", (60, 8, 8, 3))
        said, = self.h5pack_json("repack", "in.h5", "-o", "parts", "--encode", "png", "--split", "3:1", "--dry-run")
        self.assertEqual([(one["images"], one["store"]) for one in said["outputs"]], [(45, "encoded"), (15, "encoded")])
        self.assertIn("45 encoded images, at most",
                      self.h5pack("repack", "in.h5", "-o", "parts", "--encode", "png", "--split", "3:1", "--dry-run"))
        self.assertFalse((self.dir / "parts").exists())
        self.h5pack("repack", "in.h5", "-o", "parts", "--encode", "png", "--split", "3:1")
        rows = [set(self.images(f"parts/{part}.h5")[1]["source_index"]) for part in ("train", "test")]
        self.assertEqual((len(rows[0]), len(rows[1]), len(rows[0] | rows[1])), (45, 15, 60))
        again = self.h5pack("repack", "in.h5", "-o", "parts", "--encode", "png", "--split", "3:1", "--resume")
        self.assertEqual(again.count("complete already"), 2)

    def test_what_cannot_be(self):
        self.raw("in.h5", (10, 8, 8, 3))
        self.raw("two.h5", (10, 8, 8, 2))
        self.raw("four.h5", (10, 8, 8, 4))
        repack = ["repack", "in.h5", "-o", "out.h5"]
        for options, names in ((["--encode", "png", "--quality", 90], ["--quality"]), (["--quality", 90], ["--encode"]),
                               (["--encode", "webp"], ["--encode"]), (["--encode", "jpeg", "--quality", 0], ["--quality"]),
                               (["--encode", "png", "--filter", "deflate:1"], ["--filter"]),
                               (["--encode", "png", "--chunk", 4], ["--chunk"]),
                               (["--encode", "png", "--chunk-bytes", "1MiB"], ["--chunk-bytes"]),
                               (["--encode", "png", "--out-layout", "nchw"], ["--out-layout"])):
            self.assert_refused([*repack, *options], 2, names, "jpeg|leave it out|1 to 100|--encode")
        for name, codec in (("two.h5", "png"), ("two.h5", "jpeg"), ("four.h5", "jpeg")):
            self.assert_refused(["repack", name, "-o", "out.h5", "--encode", codec, "--layout", "nhwc"], 1, ["channels"],
                                "only 1, 3|--encode png")

    # ---- From encoded images ----

    def encoded(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 20, 30, 41)
        for seed in range(5):
            write_picture(self.dir / "photos" / "cat" / f"large{seed}.png", 100 + seed, 20 + 9 * seed, 90 - 11 * seed)
        exif = Image.Exif()
        exif[274] = 6
        write_picture(self.dir / "photos" / "dog" / "turned.jpg", 1, 24, 40, exif=exif)
        write_picture(self.dir / "photos" / "dog" / "wide.webp", 2, 15, 70)
        self.h5pack("folder", "photos", "-o", "in.h5", "--store", "encoded", "--orientation", "apply")
        return self.images("in.h5")

    def test_bytes_and_digests_are_kept(self):
        images, fields, _ = self.encoded()
        before, = self.h5pack_json("info", "in.h5")
        for options in ([], ["--order", "shuffled", "--seed", 9], ["--order", "source"], ["--rows", "5:30"],
                        ["--labels", "dog", "--order", "shuffled"]):
            with self.subTest(options):
                self.h5pack("repack", "in.h5", "-o", "out.h5", "--force", *options)
                copies, others, said = self.images("out.h5")
                where = {source: row for row, source in enumerate(fields["source_index"])}
                rows = [where[source] for source in others["source_index"]]
                self.assertEqual(copies, [images[row] for row in rows])
                for name in ("labels", "sample_digests"):
                    np.testing.assert_array_equal(others[name], fields[name][rows], name)
                if "--order" in options and "source" in options:
                    self.assertEqual(list(others["source_index"]), sorted(others["source_index"]))
                self.h5pack("verify", "out.h5")
                info, = self.h5pack_json("info", "out.h5")
                self.assertEqual(info["options"]["store"], "encoded")
                stored = np.concatenate([np.asarray(Image.open(io.BytesIO(one)).convert("RGB")).reshape(-1, 3)
                                         for one, _, _ in copies]) / 255
                np.testing.assert_allclose(info["statistics"]["mean"], stored.mean(0), atol=1e-4)
                if len(rows) == len(images):
                    self.assertEqual(info["statistics"], before["statistics"])

    def test_little_memory_changes_nothing(self):
        self.encoded()
        for options in (["--order", "shuffled"], ["--rows", "3:40"]):
            self.h5pack("repack", "in.h5", "-o", "a.h5", *options, "--force")
            self.h5pack("repack", "in.h5", "-o", "b.h5", *options, "--memory-budget", 4000, "--threads", 1, "--force")
            a, b = self.images("a.h5"), self.images("b.h5")
            self.assertEqual(a[0], b[0])
            np.testing.assert_array_equal(a[1]["sample_digests"], b[1]["sample_digests"])

    def test_decoded_and_encoded_again(self):
        self.encoded()
        self.h5pack("repack", "in.h5", "-o", "raw.h5", "--decode", "16x20", "--crop", "whole")
        self.h5pack("repack", "in.h5", "-o", "small.h5", "--decode", "16x20", "--crop", "whole", "--encode", "png")
        with h5py.File(self.dir / "raw.h5") as raw:
            for (encoded, size, turned), values in zip(self.images("small.h5")[0], raw["images"]):
                np.testing.assert_array_equal(self.pixels(encoded)[1], values)
        self.assert_refused(["repack", "in.h5", "-o", "x.h5", "--encode", "png"], 2, ["--encode"], "--decode")

    def test_resume_knows_how_images_become_pixels(self):
        self.encoded()
        decode = ["--decode", "16x20"]
        variants = [[], decode, [*decode, "--crop", "whole"], ["--decode", "17x20"], [*decode, "--encode", "png"]]
        for first in variants:
            self.h5pack("repack", "in.h5", "-o", "out.h5", *first, "--force")
            for second in variants:
                with self.subTest(first=first, second=second):
                    again = ["repack", "in.h5", "-o", "out.h5", *second, "--resume"]
                    if first == second:
                        self.assertIn("complete already", self.h5pack(*again))
                    else:
                        self.assert_refused(again, 1, ["out.h5", "another run", " there and "], "--force")
        self.h5pack("repack", "in.h5", "-o", "out.h5", *decode, "--force")
        self.assert_fails(["repack", "in.h5", "-o", "out.h5", *decode, "--crop", "whole", "--resume"],
                          '"--decode" is "16x20 center" there and "16x20 whole" here')
        self.h5pack("folder", "photos", "-o", "small.h5", "--store", "encoded", "--max-side", 30)
        self.assert_refused(["folder", "photos", "-o", "small.h5", "--store", "encoded", "--resume"], 1,
                            ["small.h5", '"--max-side" is 30 there and not given here'], "--force")

    def test_images_without_bytes(self):
        """As others may write them; what is named is the file that has them."""
        self.encoded()
        with h5py.File(self.dir / "in.h5") as good, h5py.File(self.dir / "bad.h5", "w") as file:
            group = file.create_group("images")
            group.attrs.update(good["images"].attrs)
            group["data"], group["sizes"] = good["images/data"][:], good["images/sizes"][:]
            ends = good["images/indptr"][:]
            ends[9] = ends[8]
            group["indptr"] = ends
        (self.dir / "flat").mkdir()
        write_picture(self.dir / "flat" / "a.png", 1, 20, 30)
        for command in (["repack", "bad.h5", "-o", "out.h5"], ["export", "bad.h5", "-o", "files"],
                        ["append", "bad.h5", "folder", "flat", "-o", "out.h5"]):
            with self.subTest(command):
                self.assert_refused(command, 1, ["image 8", "bad.h5", "no bytes"], "again")

    def test_damage_is_not_copied(self):
        self.encoded()
        with h5py.File(self.dir / "in.h5") as file:
            begin, end = file["images/data"].id.get_offset(), int(file["images/indptr"][8])
        flip(self.dir / "in.h5", begin + end - 30)
        for options in ([], ["--order", "shuffled"]):
            self.assert_refused(["repack", "in.h5", "-o", "x.h5", *options], 1, ["row 7 of 'in.h5'", "digest"], "copy or pack")
        self.h5pack("repack", "in.h5", "-o", "x.h5", "--rows", "8:20")


if __name__ == "__main__":
    import unittest

    unittest.main()
