"""h5pack repack: any image dataset in, a version-1 file out, nothing lost on the way."""

import json
import shutil

import h5py
import numpy as np

import sources
import under_strace
from h5_contents import datasets_and_attributes
from support import CliTest, arrays, chunk_offset, flip, make_class_folder, picture, tree

N = 150


def pictures(n=N, height=12, width=10, channels=3):
    return np.stack([picture(i, height, width, channels).reshape(height, width, channels) for i in range(n)])


class RepackTest(CliTest):
    def packed(self, name="in.h5", *options, per_class=25):
        self.pack_photos("--chunk", 8, *options, classes=("cat", "dog", "eel"), per_class=per_class, height=12, width=10,
                         output=name)

    def repack(self, *arguments):
        return self.h5pack_json("repack", *arguments)[0]["outputs"]

    def read(self, name):
        """Datasets and attributes of a file, which must also be sound."""
        self.h5pack("verify", name, "--quiet")
        with h5py.File(self.dir / name) as file:
            plist = file["images"].id.get_create_plist()
            self.filters = [plist.get_filter(i)[3].decode() for i in range(plist.get_nfilters())]
        return datasets_and_attributes(self.dir / name)

    def test_stratified_parts_have_the_sizes_asked_for(self):
        cases = [([per_class] * 1000, split, 0) for per_class, split in (
            (6, (9, 1)), (4, (9, 1)), (1, (9, 1)), (6, (8, 1, 1)), (3, (8, 1, 1)), (7, (1, 1, 1)))]
        for seed in range(20):
            chance = np.random.default_rng(seed)
            cases.append((chance.integers(1, 30, 40), chance.integers(1, 9, chance.integers(2, 4)), seed))
        cases.append(([20] * 30, (1, 1), 0))
        for sizes, split, seed in cases:
            with self.subTest(sizes=sizes[:3], split=split, seed=seed):
                labels = np.repeat(np.arange(len(sizes)), sizes)
                self.write_h5("in.h5", images=np.zeros((len(labels), 2, 2, 3), np.uint8), labels=labels)
                outputs = self.repack("in.h5", "-o", "split", "--stratify", "--force", "--seed", seed, "--split",
                                      ":".join(map(str, split)))
                parts = [arrays(self.dir / output["path"]) for output in outputs]
                rows = np.concatenate([part["source_index"] for part in parts])
                self.assertEqual(sorted(rows), list(range(len(labels))))
                counts = np.stack([np.bincount(part["labels"], minlength=len(sizes)) for part in parts])
                shares = np.array(split) / sum(split)
                self.assertLess(np.abs(counts.sum(axis=1) - sum(sizes) * shares).max(), 1)
                self.assertLess(np.abs(counts - shares[:, None] * sizes).max(), 1 + 1e-9)
        # Each class is split on its own: of the last case no two alike.
        rows = np.sort(parts[1]["source_index"])
        self.assertEqual(len({tuple(rows[rows // 20 == c] % 20) for c in range(30)}), 30)

    def test_labels_that_are_none_are_carried_or_refused(self):
        def write(labels, name="labels"):
            self.write_h5("in.h5", images=pictures(12), **{name: labels})

        for name in ("labels", "label"):
            for labels in (np.linspace(0, 1, 12, dtype=np.float32), np.eye(12, 5)):
                with self.subTest(name=name, shape=labels.shape):
                    write(labels, name)
                    report, = self.h5pack_json("repack", "in.h5", "-o", "out.h5", "--force")
                    carried = f"{name}_{labels.dtype}"
                    self.assertEqual(len(report["notes"]), 1)
                    self.assertIn(carried, report["notes"][0])
                    self.assertIn(carried, self.h5pack("repack", "in.h5", "-o", "out.h5", "--force"))
                    np.testing.assert_array_equal(self.read("out.h5")[0][carried], labels)
            (self.dir / "out.h5").unlink()
            for labels in (np.array([b"cat", b"dog"] * 6), np.arange(11), np.arange(24).reshape(6, 4)):
                with self.subTest(name=name, shape=labels.shape, dtype=labels.dtype):
                    write(labels, name)
                    self.assert_refused(["repack", "in.h5", "-o", "out.h5"], 1, ["in.h5", f"{name} "],
                                        r"--label-field.*--fields none")
                    self.h5pack("repack", "in.h5", "-o", "out.h5", "--fields", "none")
                    self.assertNotIn(name, self.read("out.h5")[0])
                    (self.dir / "out.h5").unlink()
        for labels in (np.arange(12).reshape(12, 1), np.arange(12) % 2 == 0):
            with self.subTest(dtype=labels.dtype):
                write(labels)
                report, = self.h5pack_json("repack", "in.h5", "-o", "out.h5", "--force")
                self.assertEqual(report["notes"], [])
                np.testing.assert_array_equal(self.read("out.h5")[0]["labels"], labels.ravel())

    def test_fields_whose_names_are_taken_are_carried_under_others(self):
        self.write_h5("in.h5", pictures=pictures(12), images=np.arange(12),
                      sample_digests=np.arange(12, 24, dtype=np.uint64))
        report, = self.h5pack_json("repack", "in.h5", "-o", "out.h5", "--order", "stored")
        self.assertEqual([note.split()[-1] for note in report["notes"]], ["images_int64", "sample_digests_uint64"])
        found = self.read("out.h5")[0]
        np.testing.assert_array_equal(found["images_int64"], np.arange(12))
        np.testing.assert_array_equal(found["sample_digests_uint64"], np.arange(12, 24))
        self.assertIn("match their digests", self.h5pack("verify", "out.h5"))

    def test_what_is_left_behind_is_said(self):
        self.write_h5("in.h5", images=pictures(12), names=[f"image {i}" for i in range(12)],
                      **{"about/mean": np.zeros(3)})
        report, = self.h5pack_json("repack", "in.h5", "-o", "out.h5")
        self.assertEqual([note.split()[:3] for note in report["notes"]],
                         [["left", "behind:", "about/mean"], ["left", "behind:", "names"]])

    def test_foreign_layouts(self):
        images, labels = pictures(), np.arange(N) % 7
        cases = {
            "contiguous": (images, {}),
            "cut": (images, {"chunks": (30, 5, 7, 2)}),
            "deflated": (images, {"chunks": (11, 12, 10, 3), "compression": "gzip", "shuffle": True}),
            # Some versions of libhdf5 refuse values of this filter that take all bits (HDFGroup/hdf5, issue 5861).
            "scaled": (images // 2, {"chunks": (11, 12, 10, 3), "scaleoffset": 0}),
            "planes": (images.transpose(0, 3, 1, 2), {"chunks": (9, 3, 12, 10), "fletcher32": True}),
        }
        for case, (stored, options) in cases.items():
            for out in ("nhwc", "nchw"):
                with self.subTest(case, out=out):
                    self.write_h5("f.h5", imgs={"data": stored, **options}, label=labels.astype(np.int16),
                                  **{"meta/box": np.arange(4 * N, dtype=np.float32).reshape(N, 4)})
                    self.repack("f.h5", "-o", "out.h5", "--chunk", 16, "--out-layout", out, "--force")
                    found, attributes, chunks = self.read("out.h5")
                    expected = stored.transpose(0, 2, 3, 1) if case == "planes" else stored
                    expected = expected if out == "nhwc" else expected.transpose(0, 3, 1, 2)
                    np.testing.assert_array_equal(found["images"], expected)
                    self.assertEqual(chunks[0], 16)
                    self.assertEqual(attributes["layout"], out.encode())
                    self.assertEqual(found["labels"].dtype, np.int64)
                    np.testing.assert_array_equal(found["labels"], labels)
                    np.testing.assert_array_equal(found["source_index"], np.arange(N))
                    np.testing.assert_array_equal(found["meta/box"], np.arange(4 * N).reshape(N, 4))
                    self.assertEqual(list(attributes["class_counts"]), np.bincount(labels).tolist())

    def test_scaling(self):
        """dataset_foreign_test.cpp has all kinds of numbers."""
        images = pictures()
        gray = 1 - images[..., 0] / 255
        colour = images.astype(np.float16).astype(">f4") / 2.55
        for numbers, scale, wanted in ((gray, "1..0", images[..., :1]), (colour, "0..100", images)):
            with self.subTest(scale):
                self.write_h5("f.h5", images={"data": numbers, "chunks": (20, *numbers.shape[1:]), "compression": "gzip"},
                              labels=np.arange(N) % 3)
                self.repack("f.h5", "-o", "out.h5", "--scale", scale, "--rows", "7:90", "--order", "shuffled", "--force")
                found, said, _ = self.read("out.h5")
                rows = found["source_index"]
                np.testing.assert_array_equal(found["images"], wanted[rows])
                np.testing.assert_array_equal(found["labels"], rows % 3)
        self.assertEqual(json.loads(said["options"])["scale"], {"black": 0, "white": 100, "clip": False})

    def test_what_cannot_be_scaled(self):
        images = np.zeros((N, 12, 10), np.float32)
        scale = ["repack", "f.h5", "-o", "out.h5", "--scale", "0..1", "--force"]
        images[77, 5, 5] = 1.5
        self.write_h5("f.h5", images=images)
        self.assert_fails(scale, "f.h5: row 77 of images has the number 1.5.*--clip")
        self.repack(*scale[1:], "--clip", "--order", "source")
        found, said, _ = self.read("out.h5")
        self.assertEqual(found["images"][77, 5, 5, 0], 255)
        self.assertTrue(json.loads(said["options"])["scale"]["clip"])
        for command in (["preview", "f.h5", "-o", "new.png"], ["repack", "f.h5", "-o", "new.h5"]):
            self.assert_refused(command, 1, ["f.h5", "float32 [150,12,10]"], r"h5pack repack .*scale = 0\.\.1")
        for text in ("0", "..1", "0..1x", "1..1", ""):
            self.assert_refused(["repack", "f.h5", "-o", "out.h5", "--scale", text, "--force"], 2, ["--scale"], "two|0..1")
        self.assert_refused(["repack", "f.h5", "-o", "out.h5", "--clip", "--force"], 2, ["--clip"], "--scale")
        self.write_h5("f.h5", images=pictures(4))
        self.assert_refused(scale, 2, ["f.h5", "uint8 already"], "--scale")

    def test_names_and_channels_that_must_be_told(self):
        four = np.random.default_rng(1).integers(0, 256, (9, 4, 5, 4), np.uint8)
        self.write_h5("f.h5", **{"a/x": pictures(9), "b/x": four, "b/y": np.arange(9)[::-1]})
        self.assert_refused(["repack", "f.h5", "-o", "out.h5"], 1, ["f.h5", "several"], "--images")
        self.repack("f.h5", "-o", "out.h5", "--images", "b/x", "--label-field", "b/y", "--layout", "nhwc")
        found, attributes, _ = self.read("out.h5")
        self.assertEqual(self.filters, [])
        np.testing.assert_array_equal(found["images"], four)
        self.assertEqual(list(found["labels"]), list(range(8, -1, -1)))
        self.assertNotIn("mean", attributes)

    def test_everything_of_a_packed_file_is_carried_along(self):
        attributes, *_ = sources.write_celeba(self.dir / "celeba", 30, size=(22, 18))
        self.h5pack("celeba", "celeba", "-o", "packed", "--chunk", 4)
        self.repack("packed/train.h5", "-o", "out.h5", "--chunk", 7)
        before, said_before, _ = self.read("packed/train.h5")
        after, said, chunks = self.read("out.h5")
        self.assertEqual(chunks[0], 7)
        self.assertEqual(before.keys(), after.keys())
        for name, values in before.items():
            np.testing.assert_array_equal(after[name], values, name)  # digests, too
        same = set(said_before) - {"uuid", "options", "rdcc_nslots", "rdcc_nbytes"}
        for name in same:
            np.testing.assert_array_equal(said[name], said_before[name], name)
        self.assertNotEqual(said["uuid"], said_before["uuid"])
        options, options_before = json.loads(said["options"]), json.loads(said_before["options"])
        self.assertEqual(options["source"], options_before["source"])
        self.assertEqual(options["repacked"][0]["uuid"].encode(), said_before["uuid"])

        self.repack("packed/train.h5", "-o", "some.h5", "--fields", "identity")
        self.assertEqual(set(self.read("some.h5")[0]),
                         {"images", "labels", "source_index", "identity", "sample_digests"})
        for name, said in (("age", "'age'"), ("\udcff", "no field")):  # the second is the byte FF, no UTF-8
            self.assert_refused(["repack", "packed/train.h5", "-o", "b.h5", "--fields", name], 1, [said], "h5pack info")

    def test_orders(self):
        self.packed("shuffled.h5", "--seed", 3)
        self.packed("source.h5", "--order", "source")
        shuffled, source = self.read("shuffled.h5"), self.read("source.h5")
        for name, options, expected in (
                ("a.h5", ["shuffled.h5", "--order", "source"], source),
                ("b.h5", ["source.h5", "--order", "shuffled", "--seed", 3], shuffled),
                ("c.h5", ["shuffled.h5"], shuffled)):
            # Small enough for several windows; all the same with the default.
            for memory in ([], ["--memory-budget", "4MiB"]):
                with self.subTest(name, memory=memory):
                    self.repack(*options, "-o", name, "--chunk", 8, "--force", *memory)
                    found, said, _ = self.read(name)
                    for dataset, values in expected[0].items():
                        np.testing.assert_array_equal(found[dataset], values, dataset)
                    for attribute in ("order", "seed", "class_names", "class_counts", "mean", "std"):
                        np.testing.assert_array_equal(said[attribute], expected[1][attribute], attribute)

    def test_windows_of_any_size_give_the_same_file(self):
        images = np.random.default_rng(4).integers(0, 256, (300, 120, 121, 3), np.uint8)
        self.write_h5("f.h5", images={"data": images, "chunks": (7, 120, 121, 3), "compression": "gzip",
                                      "compression_opts": 1})
        seen = set()
        # 13 MB in four windows, in two, and in one.
        for memory in ("8MiB", "16MiB", "1GiB"):
            for threads in (1, 4):
                self.repack("f.h5", "-o", "out.h5", "--order", "shuffled", "--chunk", 9, "--force", "--memory-budget",
                            memory, "--threads", threads, "--out-layout", "nchw")
                found, said, _ = self.read("out.h5")
                seen.add(found["sample_digests"].tobytes())
                rows = found["source_index"]
        self.assertEqual(len(seen), 1)
        np.testing.assert_array_equal(found["images"], images[rows].transpose(0, 3, 1, 2))

    def test_subsets(self):
        self.packed()
        before, _, _ = self.read("in.h5")
        labels = before["labels"]
        cases = (
            (["--rows", "3:20,70,40:42"], [*range(3, 20), 40, 41, 70]),
            (["--labels", "dog,eel"], np.flatnonzero(labels != 0)),
            (["--labels", "0", "--rows", "10:60"], [r for r in range(10, 60) if labels[r] == 0]),
        )
        for options, rows in cases:
            for order in ("stored", "shuffled"):
                with self.subTest(options, order=order):
                    output = self.repack("in.h5", "-o", "out.h5", "--chunk", 4, "--force", "--order", order,
                                         "--seed", 9, *options)[0]
                    self.assertEqual(output["images"], len(rows))
                    found, said, _ = self.read("out.h5")
                    if order == "shuffled":
                        self.assertNotEqual(list(found["source_index"]), list(before["source_index"][rows]))
                    places = {source: row for row, source in enumerate(before["source_index"])}
                    taken = [places[source] for source in found["source_index"]]
                    self.assertEqual(taken if order == "stored" else sorted(taken), list(rows))
                    np.testing.assert_array_equal(found["images"], before["images"][taken])
                    np.testing.assert_array_equal(found["labels"], labels[taken])
                    self.assertEqual(list(said["class_counts"]), np.bincount(labels[taken], minlength=3).tolist())
                    np.testing.assert_allclose(said["mean"], (found["images"] / 255).mean(axis=(0, 1, 2)))

    def test_what_is_complete_is_left_alone_unless_other_rows_are_wanted(self):
        self.packed()
        repack = ["repack", "in.h5", "-o", "out.h5", "--resume", "--rows"]
        rows = ",".join(map(str, range(0, 60, 2)))
        self.h5pack(*repack, rows)
        before = tree(self.dir)
        self.assertIn("complete already, 30 images", self.h5pack(*repack, rows))
        # As many ranges, and another row only in the last.
        self.assert_refused([*repack, rows.removesuffix("58") + "60"], 1, ["out.h5", "--rows"], "--force")
        self.assertEqual(tree(self.dir), before)

    def test_filters(self):
        """h5py reads what is compressed here, and finds the images of the source."""
        random = np.random.default_rng(5)
        images = pictures()
        images[40:80] = random.integers(0, 256, images[40:80].shape, np.uint8)  # these do not shrink
        self.write_h5("f.h5", images=images, labels=np.arange(N) % 3)
        plain = self.repack("f.h5", "-o", "plain.h5", "--chunk", 16)[0]
        for text, names in (("deflate:9", ["deflate"]), ("shuffle+deflate:6", ["shuffle", "deflate"])):
            for options in ([], ["--order", "shuffled", "--seed", 2], ["--rows", "3:97", "--out-layout", "nchw"]):
                with self.subTest(text, options=options):
                    output = self.repack("f.h5", "-o", "out.h5", "--chunk", 16, "--filter", text, "--force",
                                         *options)[0]
                    self.assertEqual(output["filter"], text)
                    self.assertLess(output["bytes"], plain["bytes"])
                    found, said, chunks = self.read("out.h5")
                    self.assertEqual((self.filters, chunks[0]), (names, 16))
                    expected = images[found["source_index"]]
                    np.testing.assert_array_equal(
                        found["images"], expected.transpose(0, 3, 1, 2) if "nchw" in options else expected)
                    self.assertEqual(json.loads(said["options"])["filter"], text)
        # There and back: the same file as without, and the digests are of the pixels.
        self.repack("f.h5", "-o", "out.h5", "--chunk", 16, "--filter", "deflate:6", "--force")
        self.repack("out.h5", "-o", "back.h5", "--chunk", 16, "--filter", "none")
        expected, said_before, _ = self.read("plain.h5")
        for name in ("out.h5", "back.h5"):
            found, said, _ = self.read(name)
            for dataset in expected:
                np.testing.assert_array_equal(found[dataset], expected[dataset])
            for attribute in ("mean", "std", "mean_picture_std", "class_counts"):
                np.testing.assert_array_equal(said[attribute], said_before[attribute])
        self.assertEqual(self.filters, [])

    def test_a_dry_run_tells_what_would_be_written(self):
        self.pack_photos(per_class=20, output="in.h5")
        before = tree(self.dir)
        for options in (["-o", "out.h5"], ["-o", "out.h5", "--rows", "0:9", "--chunk", 4, "--filter", "deflate:1"],
                        ["-o", "in.h5"], ["-o", "parts", "--split", "3:1", "--stratify"],
                        ["-o", "out.h5", "--order", "shuffled", "--chunk-bytes", "10KB", "--out-layout", "nchw"]):
            with self.subTest(options):
                plan, = self.h5pack_json("repack", "in.h5", *options, "--dry-run")
                self.assertEqual(tree(self.dir), before)
                self.assertTrue(plan["dry_run"])
                self.assertIn("about ", self.h5pack("repack", "in.h5", *options, "-n"))
                if options[1] == "in.h5":
                    continue
                report, = self.h5pack_json("repack", "in.h5", *options)
                self.assertFalse(report["dry_run"])
                for planned, made in zip(plan["outputs"], report["outputs"], strict=True):
                    for key in ("path", "images", "chunk_samples", "chunk_bytes", "chunks", "filter", "class_counts"):
                        self.assertEqual(planned[key], made[key], key)
                    if made["filter"] == "none":
                        self.assertLessEqual(planned["estimated_bytes"], made["bytes"])
                        # Beside these a file has some kilobytes of structure.
                        self.assertGreater(planned["estimated_bytes"], made["bytes"] - 16384)
                    (self.dir / made["path"]).unlink()
                if "parts" in options:
                    (self.dir / "parts").rmdir()
        # What cannot be done is refused as without --dry-run.
        self.assert_refused(["repack", "in.h5", "-o", "out.h5", "-n", "--labels", "bird"], 2, ["bird"], "cat")
        self.assert_refused(["repack", "in.h5", "-o", "out.h5", "-n", "--fields", "absent"], 1, ["absent"], "info")

    def test_statistics_are_carried_or_computed(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 10, height=24, width=20)
        make_class_folder(self.dir / "mixed", ["cat"], 5, height=24, width=20)
        make_class_folder(self.dir / "mixed", ["dog"], 5, height=30, width=40, first_seed=9)
        self.h5pack("folder", "photos", "-o", "a.h5", "--resize", "12x10", "--chunk", 4)
        self.h5pack("folder", "mixed", "-o", "b.h5", "--resize", "12x10", "--chunk", 4)
        for name, sizes in (("a.h5", [24, 20, 7]), ("b.h5", None)):
            before, said_before, _ = self.read(name)
            self.repack(name, "-o", "all.h5", "--order", "shuffled", "--seed", 8, "--force")
            _, said, _ = self.read("all.h5")
            for attribute in ("mean", "std", "mean_picture_std", "source_sizes", "source_size_range"):
                np.testing.assert_array_equal(said[attribute], said_before[attribute], attribute)
            self.repack(name, "-o", "some.h5", "--rows", "2:9", "--force")
            found, said, _ = self.read("some.h5")
            scaled = found["images"] / 255
            np.testing.assert_allclose(said["mean"], scaled.mean(axis=(0, 1, 2)))
            np.testing.assert_allclose(said["std"], scaled.std(axis=(0, 1, 2)))
            np.testing.assert_allclose(said["mean_picture_std"], scaled.std(axis=(1, 2)).mean(axis=0), atol=1e-8)
            if sizes:
                self.assertEqual(list(said["source_sizes"]), sizes)
            else:
                self.assertNotIn("source_sizes", said)
        # A file from before there was a deviation within images.
        with h5py.File(self.dir / "a.h5", "r+") as file:
            expected = file["images"].attrs["mean_picture_std"][()]
            del file["images"].attrs["mean_picture_std"]
        self.repack("a.h5", "-o", "all.h5", "--force")
        np.testing.assert_array_equal(self.read("all.h5")[1]["mean_picture_std"], expected)

    def test_splits(self):
        self.packed(per_class=30)
        before, _, _ = self.read("in.h5")
        for options, sizes in ((["--split", "0.9:0.1"], {"train": 81, "test": 9}),
                               (["--split", "8:1:1", "--stratify"], {"train": 72, "val": 9, "test": 9})):
            with self.subTest(options):
                for folder in ("parts", "again"):
                    shutil.rmtree(self.dir / folder, ignore_errors=True)
                    self.repack("in.h5", "-o", folder, "--seed", 4, *options)
                taken = []
                for name, size in sizes.items():
                    found, said, _ = self.read(f"parts/{name}.h5")
                    self.assertEqual((len(found["images"]), said["split"]), (size, name.encode()))
                    if "--stratify" in options:
                        self.assertEqual(list(said["class_counts"]), [size // 3] * 3)
                    places = [list(before["source_index"]).index(s) for s in found["source_index"]]
                    self.assertEqual(places, sorted(places))
                    np.testing.assert_array_equal(found["images"], before["images"][places])
                    taken += places
                    again = self.read(f"again/{name}.h5")[0]
                    np.testing.assert_array_equal(again["source_index"], found["source_index"])
                self.assertEqual(sorted(taken), list(range(90)))

    def test_parts_are_compared_with_the_source_of_the_whole(self):
        self.pack_photos(per_class=10, output="a.h5")
        for split, per_class, first_seed in (("train", 10, 0), ("test", 4, 100)):
            make_class_folder(self.dir / "splits" / split, ["cat", "dog"], per_class, first_seed=first_seed)
        self.h5pack("folder", "splits", "-o", "b")
        for packed, source in (("a.h5", "photos"), ("b/train.h5", "splits")):
            self.h5pack("repack", packed, "-o", "parts", "--split", "1:1", "--force")
            self.h5pack("repack", "parts/test.h5", "-o", "again", "--split", "1:1", "--force")
            for part in ("parts/train.h5", "parts/test.h5", "again/train.h5"):
                report, = self.h5pack_json("verify", part, "--against", source, "--sample", "all")
                self.assertEqual(report["source"]["different"], [], part)

    def test_damaged_files_are_known_by_name_after_repacking(self):
        self.packed()
        self.repack("in.h5", "-o", "out.h5", "--chunk", 5, "--order", "shuffled")
        source = int(arrays(self.dir / "out.h5")["source_index"][5])
        flip(self.dir / "out.h5", chunk_offset(self.dir / "out.h5", 1))
        report, = self.h5pack_json("verify", "out.h5", "--quiet", code=4)
        names = [f"photos/{name}/{i:03d}.jpg" for name in ("cat", "dog", "eel") for i in range(25)]
        self.assertEqual(report["damaged"][0]["files"][0], names[source])


class RefusedTest(CliTest):
    def setUp(self):
        super().setUp()
        self.pack_photos("--chunk", 4, per_class=10, output="a.h5")

    def test_outputs(self):
        (self.dir / "parts").mkdir()
        for name in ("b.h5", "parts/test.h5"):
            (self.dir / name).write_text("here first")
        (self.dir / "link.h5").symlink_to("a.h5")
        for shard in ("0/2", "1/2"):
            self.h5pack("folder", "photos", "-o", "s.h5", "--chunk", 4, "--shard", shard)
        with h5py.File(self.dir / "away.h5", "w") as file:
            file["images"] = h5py.ExternalLink("a.h5", "/images")
        for arguments, said, way_out in (
                (["a.h5", "-o", "b.h5"], "'b.h5' exists", "--force"),
                (["a.h5", "-o", "a.h5", "--force"], "'a.h5' is one of the inputs", "-o"),
                (["link.h5", "-o", "a.h5", "--force"], "'a.h5' is one of the inputs", "-o"),
                (["s-*-of-00002.h5", "-o", "s-00001-of-00002.h5", "--force"],
                 "'s-00001-of-00002.h5' is one of the inputs", "-o"),
                (["away.h5", "-o", "a.h5", "--force", "--allow-external"], "'a.h5' exists", "choose another -o"),
                (["a.h5", "-o", "parts", "--split", "1:1"], "parts/test.h5", "--force"),
                (["a.h5", "-o", "no/such/b.h5"], "no/such", "make it first")):
            self.assert_refused(["repack", *arguments], 1, [said], way_out)

    def test_selections(self):
        self.write_h5("no-labels.h5", images=pictures(9))
        for options, names, way_out in (
                (["--rows", "0:21"], ["20 rows", "number 20"], "--rows"),
                (["--labels", "cow"], ["'cow'"], "cat, dog"),
                (["--rows", "0:1", "--split", "1:1"], ["no sample for t"], "--split"),
                (["--split", "1:x"], ["'1:x'"], "two or three"),
                (["--filter", "gzip"], ["'gzip'"], "deflate:N"),
                (["--stratify"], ["--stratify"], "--split")):
            with self.subTest(options):
                self.assert_refused(["repack", "a.h5", "-o", "b", *options], 2, names, way_out)
        self.assert_refused(["repack", "no-labels.h5", "-o", "b", "--split", "1:1", "--stratify"], 2, ["no labels"],
                            "--label-field")
        self.assert_refused(["repack", "a.h5", "-o", "b.h5", "--memory-budget", "64KiB"], 1, ["at least"],
                            r"raise memory_budget \(--memory-budget\)$")

    def test_damaged_pictures_are_not_copied(self):
        flip(self.dir / "a.h5", chunk_offset(self.dir / "a.h5", 3) + 100, 16)
        for order in ("stored", "shuffled"):
            self.assert_refused(["repack", "a.h5", "-o", "b.h5", "--order", order], 1, ["a.h5", "chunk 3"], "digest")

    @under_strace.required
    def test_what_was_there_stays_when_a_signal_comes(self):
        (self.dir / "b.h5").write_text("here first")
        before = tree(self.dir)
        result, calls = self.traced(["-e", "trace=fallocate", "-e", "inject=fallocate:signal=TERM:when=1"],
                                    "repack", "a.h5", "-o", "b.h5", "--force", "--quiet")
        self.assertIn("SIGTERM", calls)
        self.assertEqual(result.returncode, 143, result.stderr)
        self.assertRegex(result.stderr, "SIGTERM; nothing of the file is kept")
        self.assertEqual(tree(self.dir), before)
