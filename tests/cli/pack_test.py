"""Packing, read back with h5py and compared with what Pillow decodes."""

import json
import unittest

import h5py
import numpy as np
from PIL import Image

import sources
from support import CliTest, make_class_folder, picture, pillow_pixels, tree, write_picture


def in_source_order(file, name):
    """A dataset of a packed file with its rows back in source order."""
    rows = np.empty_like(file[name][()])
    rows[file["source_index"][()]] = file[name][()]
    return rows


class PackTest(CliTest):
    def assert_holds(self, file, samples):
        """The open file must hold exactly these (path, label) samples, as Pillow decodes them."""
        self.assertEqual(sorted(file["source_index"]), list(range(len(samples))))
        images, labels = in_source_order(file, "images"), in_source_order(file, "labels")
        self.assertEqual(images.dtype, np.uint8)
        self.assertEqual(labels.dtype, np.int64)
        for i, (path, label) in enumerate(samples):
            np.testing.assert_array_equal(images[i], pillow_pixels(path), path)
            self.assertEqual(labels[i], label, path)

    def names(self, file, attribute="class_names"):
        return [name.decode() if isinstance(name, bytes) else name
                for name in file["images"].attrs[attribute]]

    def test_splits_make_no_folder_that_looks_like_a_file(self):
        for split in "train", "test":
            make_class_folder(self.dir / "photos" / split, ["dog", "cat"], 1)
        self.assert_refused(["folder", "photos", "-o", "cifar.h5"], 2, ["cifar.h5", "folder"], "-o .*cifar")
        sources.write_cifar10(self.dir / "cifar")
        sources.write_celeba(self.dir / "celeba", 12)
        self.assert_refused(["cifar", "cifar", "-o", "out.h5"], 2, ["out.h5", "folder"], "-o 'out'")
        self.assert_refused(["celeba", "celeba", "-o", "out.hdf5"], 2, ["out.hdf5", "folder"], "-o 'out'")
        self.assertFalse([name for name in ("cifar.h5", "out.h5", "out.hdf5") if (self.dir / name).exists()])

    def test_folder_with_splits(self):
        splits = {"train": make_class_folder(self.dir / "photos" / "train", ["dog", "cat", "ant"], 9),
                  "test": make_class_folder(self.dir / "photos" / "test", ["dog", "ant"], 4,
                                            first_seed=1000)}
        # One class list for both: the test split has no cats, and dogs keep their number.
        splits["test"] = [(path, 2 if "dog" in path else 0) for path, _ in splits["test"]]
        self.h5pack("folder", "photos", "-o", "packed", "--chunk", "5")
        self.assertEqual(sorted(p.name for p in (self.dir / "packed").iterdir()),
                         ["test.h5", "train.h5"])
        for split, samples in splits.items():
            with h5py.File(self.dir / "packed" / f"{split}.h5") as file:
                self.assert_holds(file, samples)
                self.assertEqual(file["images"].chunks, (5, 32, 32, 3))
                self.assertEqual(self.names(file), ["ant", "cat", "dog"])
                self.assertEqual(list(file["images"].attrs["class_counts"]),
                                 [sum(label == c for _, label in samples) for c in range(3)])
                pixels = file["images"][()].reshape(-1, 3) / 255
                np.testing.assert_allclose(file["images"].attrs["mean"], pixels.mean(axis=0), atol=1e-9)
                np.testing.assert_allclose(file["images"].attrs["std"], pixels.std(axis=0), atol=1e-9)

    def test_folder_rules(self):
        """Nested files belong to the top class, extensions count in any case, other files do not."""
        make_class_folder(self.dir / "photos", ["b", "a"], 2)
        write_picture(self.dir / "photos" / "b" / "deep" / "er" / "x.PNG", 50)
        write_picture(self.dir / "photos" / "B" / "y.bmp", 51)
        (self.dir / "photos" / "b" / "notes.txt").write_text("not an image")
        self.h5pack("folder", "photos", "-o", "out.h5", "--order", "source")
        with h5py.File(self.dir / "out.h5") as file:
            self.assertEqual(self.names(file), ["B", "a", "b"])
            self.assertEqual(list(file["labels"]), [0, 1, 1, 2, 2, 2])
            np.testing.assert_array_equal(file["images"][0], picture(51))
            self.assertEqual(sum((file["images"][i] == picture(50)).all() for i in range(6)), 1)

    def test_folder_of_pictures_has_no_labels(self):
        for i in range(3):
            write_picture(self.dir / "photos" / f"{i}.jpg", i)
        self.h5pack("folder", "photos", "-o", "out.h5")
        with h5py.File(self.dir / "out.h5") as file:
            self.assertNotIn("labels", file)
            self.assertEqual(file["images"].shape, (3, 32, 32, 3))

    def test_order_and_threads(self):
        samples = make_class_folder(self.dir / "photos", ["cat", "dog"], 20)
        for name, options in {"a": ["--seed", 1], "b": ["--seed", 1, "--threads", 1],
                              "c": ["--seed", 2], "s": ["--order", "source"]}.items():
            self.h5pack("folder", "photos", "-o", f"{name}.h5", "--chunk", 7, *options)
        order = {}
        for name in "abcs":
            with h5py.File(self.dir / f"{name}.h5") as file:
                self.assert_holds(file, samples)
                order[name] = list(file["source_index"])
        self.assertEqual(order["a"], order["b"])
        self.assertNotEqual(order["a"], order["c"])
        self.assertEqual(order["s"], list(range(40)))
        self.assertNotEqual(order["a"], order["s"])

    def test_dry_run_writes_nothing(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 3)
        before = tree(self.dir)
        plan = self.h5pack_json("folder", "photos", "-o", "out.h5", "--dry-run")[0]
        self.assertEqual(plan["class_names"], ["cat", "dog"])
        self.assertEqual(plan["outputs"][0]["images"], 6)
        self.assertEqual(plan["outputs"][0]["class_counts"], [3, 3])
        self.assertIn("cat: 3", self.h5pack("folder", "photos", "-o", "out.h5", "--dry-run"))
        self.assertEqual(tree(self.dir), before)

    def test_cifar10(self):
        samples = sources.write_cifar10(self.dir / "cifar")
        self.h5pack("cifar", "cifar", "-o", "out")
        for split, expected in samples.items():
            with h5py.File(self.dir / "out" / f"{split}.h5") as file:
                self.assertEqual(self.names(file), sources.CIFAR10_CLASSES)
                images, labels = in_source_order(file, "images"), in_source_order(file, "labels")
                self.assertEqual(len(images), len(expected))
                for i, (label, seed) in enumerate(expected):
                    np.testing.assert_array_equal(images[i], picture(seed))
                    self.assertEqual(labels[i], label)

    def test_cifar100(self):
        samples = sources.write_cifar100(self.dir / "cifar-100-binary")
        self.h5pack("cifar", ".", "-o", "out", "--out-layout", "nchw")
        for split, expected in samples.items():
            with h5py.File(self.dir / "out" / f"{split}.h5") as file:
                self.assertEqual(self.names(file)[3], "fine03")
                images = in_source_order(file, "images")
                fine, coarse = (in_source_order(file, n) for n in ("labels", "coarse_labels"))
                self.assertEqual(images.shape, (len(expected), 3, 32, 32))
                for i, (coarse_label, fine_label, seed) in enumerate(expected):
                    np.testing.assert_array_equal(images[i], picture(seed).transpose(2, 0, 1))
                    self.assertEqual((coarse[i], fine[i]), (coarse_label, fine_label))

    def check_celeba(self, nested):
        attributes, partition, identity, landmarks, paths = sources.write_celeba(
            self.dir / "celeba", 24, nested=nested)
        self.h5pack("celeba", "celeba", "-o", "out")
        for number, split in enumerate(("train", "val", "test")):
            rows = np.flatnonzero(partition == number)
            with h5py.File(self.dir / "out" / f"{split}.h5") as file:
                images = in_source_order(file, "images")
                self.assertEqual(images.shape, (len(rows), 218, 178, 3))
                np.testing.assert_array_equal(in_source_order(file, "labels"), attributes[rows])
                np.testing.assert_array_equal(in_source_order(file, "identity"), identity[rows])
                np.testing.assert_array_equal(in_source_order(file, "landmarks"), landmarks[rows])
                self.assertEqual(self.names(file, "attribute_names"), sources.CELEBA_ATTRIBUTES)
                for i, row in enumerate(rows):
                    np.testing.assert_array_equal(images[i], pillow_pixels(paths[row]))
        epoch = self.h5pack_json("stream", "out/train.h5", "--batch", 4, "--fields",
                                 "identity,landmarks")[0]
        self.assertEqual(epoch["images"], int((partition == 0).sum()))

    def test_celeba(self):
        self.check_celeba(nested=False)

    def test_celeba_nested_folder(self):
        self.check_celeba(nested=True)

    def test_celeba_csv_tables(self):
        attributes, *_ = sources.write_celeba(self.dir / "celeba", 6, size=(22, 18), partition=False,
                                              further=False)
        table = self.dir / "celeba" / "list_attr_celeba.txt"
        lines = table.read_text().splitlines()
        rows = [",".join(["image_id", *lines[1].split()])] + [",".join(l.split()) for l in lines[2:]]
        table.unlink()
        table.with_suffix(".csv").write_text("\n".join(rows) + "\n")
        self.h5pack("celeba", "celeba", "-o", "out")
        with h5py.File(self.dir / "out" / "train.h5") as file:
            np.testing.assert_array_equal(in_source_order(file, "labels"), attributes)

    def test_csv(self):
        awkward = 'a, "b"\nc.png'
        write_picture(self.dir / "data" / awkward, 1)
        write_picture(self.dir / "data" / "two.png", 2)
        quoted = awkward.replace('"', '""')
        (self.dir / "list.csv").write_text(
            f'id,kind,file\r\n1,"zebra, striped","{quoted}"\r\n2,ant,two.png\r\n')
        self.h5pack("csv", "list.csv", "-o", "out.h5", "--path-column", "file", "--label-column",
                    "kind", "--root", "data", "--order", "source")
        with h5py.File(self.dir / "out.h5") as file:
            self.assertEqual(self.names(file), ["ant", "zebra, striped"])
            self.assertEqual(list(file["labels"]), [1, 0])
            np.testing.assert_array_equal(file["images"][0], picture(1))
            np.testing.assert_array_equal(file["images"][1], picture(2))

    def test_csv_through_standard_input(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 3)
        text = "path,label\n" + "".join(f"photos/{name}/{i:03d}.jpg,{name}\n" for name in ("cat", "dog") for i in range(3))
        (self.dir / "list.csv").write_text(text)
        self.h5pack("csv", "list.csv", "-o", "file.h5")
        self.h5pack("csv", "-", "-o", "piped.h5", input=text)
        with h5py.File(self.dir / "file.h5") as file, h5py.File(self.dir / "piped.h5") as piped:
            np.testing.assert_array_equal(file["images"][()], piped["images"][()])
            np.testing.assert_array_equal(file["labels"][()], piped["labels"][()])
        # The same list again: there is nothing to do.
        self.assertIn("complete already", self.h5pack("csv", "-", "-o", "piped.h5", "--resume", input=text))
        # Relative paths start in the folder of --root, else in the current one.
        self.h5pack("csv", "-", "-o", "rooted.h5", "--root", "photos", input=text.replace("photos/", ""))
        self.h5pack("append", "file.h5", "csv", "-", "-o", "more.h5", input=text)
        # Who verifies has to bring the list, since nobody keeps it.
        self.h5pack("verify", "piped.h5", "--against", "list.csv")
        self.h5pack("verify", "piped.h5", "--against", "-", input=text)
        self.h5pack("verify", "piped.h5")
        for text, reason in (("", "standard input is empty"), ("path,label\n", "standard input.* lists no images"),
                             ("path\nphotos/cat/009.jpg\n", "standard input.* line 2.*photos/cat/009.jpg")):
            with self.subTest(reason):
                done = self.run_h5pack("csv", "-", "-o", "new.h5", input=text)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
                self.assertRegex(done.stderr, reason)
                self.assertFalse((self.dir / "new.h5").exists())

    def test_csv_with_numbers(self):
        for i in range(3):
            write_picture(self.dir / f"{i}.png", i)
        (self.dir / "list.csv").write_text("path,label\n0.png,7\n1.png,0\n2.png,7\n")
        self.h5pack("csv", "list.csv", "-o", "out.h5", "--order", "source")
        with h5py.File(self.dir / "out.h5") as file:
            self.assertEqual(list(file["labels"]), [7, 0, 7])

    def test_picture_options(self):
        write_picture(self.dir / "photos" / "wide.png", 1, height=40, width=80)
        write_picture(self.dir / "photos" / "tall.png", 2, height=60, width=30)
        shapes = {("--resize", "20x24"): (20, 24, 3),
                  ("--resize", "20", "--center-crop", "20x16"): (20, 16, 3),
                  ("--pad", "90x90"): (90, 90, 3),
                  ("--center-crop", "30x30", "--channels", "gray"): (30, 30, 1),
                  ("--center-crop", "30x24", "--out-layout", "nchw"): (3, 30, 24)}
        for options, shape in shapes.items():
            with self.subTest(options):
                self.h5pack("folder", "photos", "-o", "out.h5", "--force", "--order", "source",
                            *options)
                with h5py.File(self.dir / "out.h5") as file:
                    self.assertEqual(file["images"].shape, (2, *shape))
        self.h5pack("folder", "photos", "-o", "out.h5", "--force", "--order", "source", "--pad", "90x90")
        with h5py.File(self.dir / "out.h5") as file:
            padded = file["images"][1]  # "wide" after "tall"
            np.testing.assert_array_equal(padded[25:65, 5:85], picture(1, 40, 80))
            self.assertEqual(padded.sum(), picture(1, 40, 80).sum(dtype=np.int64))

    def test_colour_conversions(self):
        rgb = Image.fromarray(picture(3))
        (self.dir / "photos").mkdir()
        rgb.convert("L").save(self.dir / "photos" / "0_gray.png")
        rgb.convert("P", palette=Image.Palette.ADAPTIVE).save(self.dir / "photos" / "1_palette.png")
        rgb.convert("RGBA").save(self.dir / "photos" / "2_alpha.png")
        rgb.convert("CMYK").save(self.dir / "photos" / "3_cmyk.jpg", quality=95)
        Image.fromarray(picture(4, channels=1).astype(np.uint16) * 257).save(
            self.dir / "photos" / "4_sixteen.png")
        rgb.convert("L").save(self.dir / "photos" / "5_gray.jpg", quality=95)
        self.h5pack("folder", "photos", "-o", "out.h5", "--order", "source")
        with h5py.File(self.dir / "out.h5") as file:
            images = file["images"][()]
        for i, name in ((0, "0_gray.png"), (1, "1_palette.png"), (2, "2_alpha.png"), (5, "5_gray.jpg")):
            np.testing.assert_array_equal(images[i], pillow_pixels(self.dir / "photos" / name), name)
        difference = np.abs(images[3].astype(int) - picture(3))
        self.assertLess(difference.mean(), 8, "CMYK should come out close to the original")
        gray = picture(4, channels=1).astype(int)
        self.assertLessEqual(np.abs(images[4].astype(int) - gray[:, :, None]).max(), 1)

    def test_orientation(self):
        (self.dir / "photos").mkdir()
        exif = Image.Exif()
        exif[0x0112] = 6  # to be turned by 90 degrees
        Image.fromarray(picture(5, 32, 48)).save(self.dir / "photos" / "a.jpg", quality=95, exif=exif)
        stored = pillow_pixels(self.dir / "photos" / "a.jpg")
        self.h5pack("folder", "photos", "-o", "ignored.h5")
        self.h5pack("folder", "photos", "-o", "applied.h5", "--orientation", "apply")
        with h5py.File(self.dir / "ignored.h5") as file:
            np.testing.assert_array_equal(file["images"][0], stored)
        with h5py.File(self.dir / "applied.h5") as file:
            np.testing.assert_array_equal(file["images"][0], np.rot90(stored, -1))

    def test_result_as_json(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 3)
        result = self.h5pack_json("folder", "photos", "-o", "out.h5")[0]
        self.assertEqual(result["outputs"][0]["images"], 6)
        with h5py.File(self.dir / "out.h5") as file:
            options = json.loads(file.attrs["options"])
        self.assertEqual((options["command"], options["order"]), ("folder", "shuffled"))
        self.assertEqual(options["source"]["kind"], "folder")


if __name__ == "__main__":
    unittest.main()
