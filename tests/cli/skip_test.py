"""Images that cannot be packed: --on-error, --max-errors, --report, --max-pixels, and what the file holds then."""

import io
import json
import os
import pathlib
import re
import resource
import struct
import zlib

import h5py
import numpy as np
from PIL import Image

import sources
import under_strace
from h5_contents import contents
from make_pictures import PNG_SIGNATURE, png_chunk
from support import SKIPPED, CliTest, arrays, make_class_folder, picture, pillow_pixels, tree, write_picture


def png_that_declares(height, width):
    """A PNG of a few dozen bytes, right in all but that its pixels are not there."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return PNG_SIGNATURE + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(b"")) + png_chunk(b"IEND", b"")


def encoded(form, height=32, width=32, **options):
    buffer = io.BytesIO()
    Image.fromarray(picture(1, height, width)).save(buffer, form, **options)
    return bytearray(buffer.getvalue())


def bad_pictures():
    """{file name: (its bytes, a part of the reason)}; decode_test.cpp has what else can be wrong with an image."""
    jpeg, png = encoded("JPEG", quality=92), encoded("PNG")
    # In its frame header, behind the marker, the length and the precision.
    twelve, frame = bytearray(jpeg), jpeg.index(b"\xff\xc0")
    twelve[frame + 4] = 12
    huge = bytearray(jpeg)
    struct.pack_into(">HH", huge, frame + 5, 60000, 60000)
    # The end marker in the middle of the entropy-coded data.
    flipped = bytearray(jpeg)
    flipped[-100:-98] = b"\xff\xd9"
    return {
        "cut.jpg": (jpeg[:len(jpeg) // 2], "Premature end"), "flipped.jpg": (flipped, "cannot decode"),
        "header_only.jpg": (jpeg[:frame + 19], "cannot decode"), "twelve_bits.jpg": (twelve, "precision"),
        "empty.jpg": (b"", "0 bytes"), "text.jpg": (b"These are not the pixels you are looking for.\n", "not an image"),
        "gif.jpg": (encoded("GIF"), "GIF"), "cut.png": (png[:-30], "ends early"),
        "pages.tif": (encoded("TIFF", save_all=True, append_images=[Image.fromarray(picture(9))]), "several pages"),
        "bomb.jpg": (huge, "60000x60000"), "bomb.png": (png_that_declares(30000, 30000), "30000x30000"),
        "wide.png": (png_that_declares(1, 2000000), "1x2000000"),
        "declares_more.ppm": (b"P6\n60000 60000\n255\n", "ends early"),
        "other_size.jpg": (encoded("JPEG", height=40, width=24), "--resize"),
    }


class SkipTest(CliTest):
    def setUp(self):
        super().setUp()
        self.good = make_class_folder(self.dir / "photos", ["cat", "dog"], 30)

    def add_bad(self, folder="dog"):
        bad = bad_pictures()
        for name, (data, _) in bad.items():
            (self.dir / "photos" / folder / name).write_bytes(data)
        return {f"photos/{folder}/{name}": reason for name, (_, reason) in bad.items()}

    def skip(self, *arguments, code=SKIPPED):
        """Packs with --on-error skip; returns what is said of the output as JSON."""
        return self.h5pack_json(*arguments, "--on-error", "skip", code=code)[0]["outputs"][0]

    def report(self, name):
        return [json.loads(line) for line in (self.dir / name).read_text().splitlines()]

    def assert_holds(self, name, good, found):
        """NAME holds exactly the good (path, label) samples, in the order that `source_index` says."""
        with h5py.File(self.dir / name) as file:
            rows = list(file["source_index"])
            images, labels = file["images"][()], file["labels"][()]
            counts = list(file["images"].attrs["class_counts"])
        paths = sorted(str(p) for p in (self.dir / "photos").rglob("*.*"))
        self.assertEqual(len(paths), found)
        self.assertEqual(len(images), len(good))
        self.assertEqual(len(rows), len(set(rows)))
        expected = dict(good)
        for image, label, row in zip(images, labels, rows):
            self.assertEqual(label, expected.pop(paths[row]))
            np.testing.assert_array_equal(image, pillow_pixels(paths[row]), paths[row])
        self.assertEqual(expected, {})
        self.assertEqual(counts, [sum(label == c for _, label in good) for c in (0, 1)])

    def test_everything_bad_is_left_out_and_listed(self):
        bad = self.add_bad()
        found = len(self.good) + len(bad)
        said = self.skip("folder", "photos", "-o", "out.h5", "--chunk", 7, "--report", "bad.jsonl")
        self.assertEqual((said["found"], said["images"], said["skipped_images"]), (found, len(self.good), len(bad)))
        report = {entry["path"]: entry for entry in self.report("bad.jsonl")}
        self.assertEqual(set(report), set(bad))
        self.assertEqual({entry["path"] for entry in said["skipped"]}, set(bad))
        for path, reason in bad.items():
            entry = report[path]
            self.assertEqual((entry["label"], entry["class"], entry["output"]), (1, "dog", "out.h5"))
            self.assertIn(reason, entry["reason"])
            self.assertIn(path, entry["reason"])
            self.assertNotIn("\n", entry["reason"])
        bombs = {path for path in bad if "bomb" in path}
        self.assertEqual({path for path in bad if report[path]["code"] == "refused_by_policy"}, bombs)
        self.assert_holds("out.h5", self.good, found)
        self.h5pack("verify", "out.h5")
        epoch = self.h5pack_json("stream", "out.h5", "--verify", "always")[0]
        self.assertEqual((epoch["images"], epoch["skipped_images"]), (len(self.good), 0))

    def test_every_bad_picture_alone_ends_the_pack_by_default(self):
        """And those that declare to be huge take no memory."""
        limit = (300 << 20, 300 << 20)
        for name, (data, reason) in bad_pictures().items():
            with self.subTest(name):
                path = self.dir / "photos" / "dog" / name
                path.write_bytes(data)
                before = tree(self.dir)
                limited = name.startswith("bomb") and not os.environ.get("CHUNKIO_SANITIZE")
                result = self.assert_fails(
                    ["folder", "photos", "-o", "out.h5", "--threads", 1], re.escape(reason),
                    preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_DATA, limit)) if limited else None)
                self.assertIn(f"photos/dog/{name}", result.stderr)
                self.assertIn("--on-error skip", result.stderr)
                self.assertEqual(tree(self.dir), before)
                path.unlink()

    def test_threads_do_not_matter(self):
        self.add_bad("cat")
        self.add_bad("dog")
        made = []
        for threads in (1, 2, 7):
            self.skip("folder", "photos", "-o", "out.h5", "--chunk", 5, "--threads", threads, "--report", "bad.jsonl",
                      "--force")
            made.append((contents(self.dir / "out.h5"), self.report("bad.jsonl")))
        self.assertEqual(made[0], made[1])
        self.assertEqual(made[0], made[2])

    def test_nothing_skipped_is_success(self):
        said = self.skip("folder", "photos", "-o", "out.h5", "--report", "bad.jsonl", code=0)
        self.assertEqual((said["skipped_images"], said["skipped"]), (0, []))
        self.assertEqual((self.dir / "bad.jsonl").read_bytes(), b"")
        self.h5pack("folder", "photos", "-o", "plain.h5")
        skip, plain = arrays(self.dir / "out.h5"), arrays(self.dir / "plain.h5")
        for name in ("images", "labels", "source_index"):
            np.testing.assert_array_equal(skip[name], plain[name])

    def test_nothing_left(self):
        for path, _ in self.good:
            pathlib.Path(path).write_bytes(b"no image")
        before = tree(self.dir)
        for options in ([], ["--resize", "8x8"]):
            self.assert_fails(["folder", "photos", "-o", "out.h5", "--on-error", "skip", *options], "not an image")
            self.assertEqual(tree(self.dir), before)

    def test_max_errors(self):
        bad = self.add_bad()
        pack = ["folder", "photos", "-o", "out.h5", "--on-error", "skip", "--quiet", "--chunk", 5]
        self.assertEqual(self.run_h5pack(*pack, "--max-errors", len(bad)).returncode, SKIPPED)
        (self.dir / "out.h5").unlink()
        for most in (0, len(bad) - 1):
            with self.subTest(most):
                self.assert_fails([*pack, "--max-errors", most, "--report", f"{most}.jsonl"],
                                  f"more than {most} images.*--max-errors")
                self.assertFalse((self.dir / "out.h5").exists())
                listed = [entry["path"] for entry in self.report(f"{most}.jsonl")]
                self.assertEqual(len(listed), most + 1)
                self.assertLessEqual(set(listed), set(bad))

    def test_max_errors_counts_over_all_splits(self):
        for split in ("train", "test"):
            make_class_folder(self.dir / "splits" / split, ["cat", "dog"], 3)
            (self.dir / "splits" / split / "cat" / "bad.jpg").write_bytes(b"no image")
        pack = ["folder", "splits", "-o", "out", "--on-error", "skip", "--quiet"]
        self.assertEqual(self.run_h5pack(*pack, "--max-errors", 1).returncode, 1)
        self.assertEqual(self.run_h5pack(*pack, "--max-errors", 2, "--force", "--report", "bad.jsonl").returncode,
                         SKIPPED)
        self.assertEqual([(e["split"], e["output"]) for e in self.report("bad.jsonl")],
                         [("train", "out/train.h5"), ("test", "out/test.h5")])

    def test_report_of_names_that_are_no_utf8(self):
        name = b"\xff\nx.jpg"
        (self.dir / "photos" / "cat" / os.fsdecode(name)).write_bytes(b"no image")
        self.skip("folder", "photos", "-o", "out.h5", "--report", "bad.jsonl")
        entry, = self.report("bad.jsonl")
        self.assertTrue(bytes.fromhex(entry["path_hex"]).endswith(b"/" + name))

    @under_strace.required
    def test_the_report_is_there_before_the_file(self):
        """A run that is killed when the file has appeared would have nothing left to say."""
        (self.dir / "photos/cat/000.jpg").write_bytes(b"no image")
        pack = ["folder", "photos", "-o", "out.h5", "--on-error", "skip", "--report", "bad.jsonl"]
        # The path, since sanitizers unlink files of their own.
        self.traced(["-P", "out.h5.partial.journal", "-e", "inject=unlink:signal=KILL"], *pack)
        self.assertTrue((self.dir / "out.h5").exists())
        report = (self.dir / "bad.jsonl").read_text()
        self.assertIn("photos/cat/000.jpg", report)
        result = self.run_h5pack(*pack, "--resume")
        self.assertEqual(result.returncode, SKIPPED, result.stderr)
        self.assertIn("complete already", result.stdout)
        self.assertEqual((self.dir / "bad.jsonl").read_text(), report)

    def test_report_replaces_nothing(self):
        (self.dir / "bad.jsonl").write_text("precious")
        pack = ["folder", "photos", "-o", "out.h5", "--on-error", "skip"]
        self.assert_refused([*pack, "--report", "bad.jsonl"], 1, ["bad.jsonl"], r"--force")
        self.assert_refused([*pack, "--report", "photos/cat/000.jpg", "--force"], 1, ["000.jpg"], r"is no report")
        (self.dir / "list.csv").write_text("{path}\nphotos/cat/000.jpg\n")
        self.assert_refused(["csv", "list.csv", "--path-column", "{path}", *pack[2:], "--report", "list.csv", "--force"],
                            1, ["list.csv"], r"one of the inputs")
        self.assert_refused([*pack, "--report", "no/such.jsonl"], 1, ["no/such.jsonl"], r"create")
        self.assert_refused([*pack, "--report", "bad.jsonl", "--force"], 1, ["bad.jsonl"], r"is no report")
        (self.dir / "alias").symlink_to(".")
        for report in ("out.h5", "./out.h5", "alias/out.h5", "out.h5.partial", "out.h5.partial.journal"):
            with self.subTest(report):
                self.assert_refused([*pack, "--report", report, "--force"], 2, [f"'{report}'"], r"name another")

    def test_wrong_usage(self):
        pack = ["folder", "photos", "-o", "out.h5"]
        for options, name in ((["--on-error", "hope"], "--on-error"), (["--max-errors", "3"], "--on-error skip"),
                              (["--report", "r"], "--on-error skip"), (["--max-pixels", "0"], "--max-pixels"),
                              (["--max-pixels", str(2**31)], "--max-pixels"),
                              (["--on-error", "skip", "--max-errors", "-1"], "--max-errors"),
                              (["--shrink-on-load"], "--resize")):
            with self.subTest(options):
                self.assert_refused([*pack, *options], 2, [name], r"\w")

    def test_unreadable_vanished_and_dangling_files(self):
        self.let_nobody_write(self.dir)
        (self.dir / "photos" / "dog" / "003.jpg").chmod(0)
        (self.dir / "photos" / "dog" / "gone.jpg").symlink_to("nowhere.jpg")
        (self.dir / "photos" / "dog" / "loop.jpg").symlink_to("loop.jpg")
        report, = self.h5pack_json("folder", "photos", "-o", "out.h5", "--on-error", "skip", code=SKIPPED,
                                   unprivileged=True)
        self.assertEqual({os.path.basename(e["path"]): e["code"] for e in report["outputs"][0]["skipped"]},
                         {"003.jpg": "io_failed", "gone.jpg": "not_found", "loop.jpg": "io_failed"})

    def test_csv_rows_without_a_file(self):
        (self.dir / "list.csv").write_text(
            "path,label\nphotos/cat/000.jpg,cat\nphotos/cat/777.jpg,dog\nphotos/dog/001.jpg,dog\n")
        said = self.skip("csv", "list.csv", "-o", "out.h5", "--order", "source")
        self.assertEqual([e["path"] for e in said["skipped"]], ["photos/cat/777.jpg"])
        out = arrays(self.dir / "out.h5")
        self.assertEqual((list(out["labels"]), list(out["source_index"])), ([0, 1], [0, 2]))

    def test_celeba_keeps_all_fields_together(self):
        attributes, partition, identity, landmarks, paths = sources.write_celeba(self.dir / "celeba", 30, size=(22, 18))
        members = np.flatnonzero(partition == 0)
        for i in members[::2]:
            pathlib.Path(paths[i]).write_bytes(b"no image")
        self.skip("celeba", "celeba", "-o", "out", "--chunk", 3)
        out = arrays(self.dir / "out" / "train.h5")
        rows = members[out["source_index"]]
        self.assertEqual(sorted(rows), list(members[1::2]))
        for name, values in (("labels", attributes), ("identity", identity), ("landmarks", landmarks)):
            np.testing.assert_array_equal(out[name], values[rows])
        for image, row in zip(out["images"], rows):
            np.testing.assert_array_equal(image, pillow_pixels(paths[row]))

    def test_a_source_that_is_gone_is_no_million_of_bad_pictures(self):
        """The list is read, then the whole folder is taken away, as an unmounted disk is."""
        (self.dir / "list.csv").write_text("path\n" + "".join(f"photos/gone/{i}.jpg\n" for i in range(500)))
        self.assert_fails(["csv", "list.csv", "-o", "out.h5", "--on-error", "skip", "--resize", "8x8"],
                          "none of the 500")


class ImageOptionsTest(CliTest):
    def test_the_limit_is_exact_for_every_format(self):
        for extension in ("jpg", "png", "bmp", "ppm", "tif", "webp"):
            with self.subTest(extension):
                folder = self.dir / extension
                write_picture(folder / f"a.{extension}", 1, height=20, width=30)
                self.h5pack("folder", folder, "-o", f"{extension}.h5", "--max-pixels", 600)
                self.assert_fails(["folder", folder, "-o", "none.h5", "--max-pixels", 599], "20x30.*--max-pixels")
                self.assertFalse((self.dir / "none.h5").exists())

    def test_what_is_shrunk_on_load_has_the_same_size_and_close_pixels(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 4, height=301, width=203)
        exif = Image.Exif()
        exif[0x0112] = 6
        (self.dir / "turned").mkdir()
        Image.fromarray(picture(5, 160, 240)).save(self.dir / "turned" / "a.jpg", quality=95, exif=exif)
        for folder, options in (("photos", ["--resize", "40x30"]), ("turned", ["--orientation", "apply", "--resize", "60x40"]),
                                ("photos", ["--resize", "32", "--center-crop", "32x32"]),
                                ("photos", ["--resize", "150", "--pad", "240x240", "--channels", "gray"])):
            with self.subTest(options):
                self.h5pack("folder", folder, "-o", "whole.h5", "--force", *options)
                self.h5pack("folder", folder, "-o", "shrunk.h5", "--force", "--shrink-on-load", *options)
                whole, shrunk = arrays(self.dir / "whole.h5"), arrays(self.dir / "shrunk.h5")
                self.assertEqual(whole["images"].shape, shrunk["images"].shape)
                difference = np.abs(whole["images"].astype(int) - shrunk["images"])
                self.assertLess(difference.mean(), 2)
                if "150" not in options:
                    self.assertTrue(difference.any(), "nothing was shrunk on load")
                self.assertEqual(list(whole["source_index"]), list(shrunk["source_index"]))
