"""Packing, read back with h5py and compared with what Pillow decodes."""

import json

import h5py
import numpy as np
from PIL import Image

import sources
from support import CliTest, arrays, make_class_folder, picture, pillow_pixels, tree, write_picture


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
        return [name.decode() if isinstance(name, bytes) else name for name in file["images"].attrs[attribute]]

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
                  "test": make_class_folder(self.dir / "photos" / "test", ["dog", "ant"], 4, first_seed=1000)}
        # One class list for both: the test split has no cats, and dogs keep their number.
        splits["test"] = [(path, 2 if "dog" in path else 0) for path, _ in splits["test"]]
        self.h5pack("folder", "photos", "-o", "packed", "--chunk", "5")
        self.assertEqual(sorted(p.name for p in (self.dir / "packed").iterdir()), ["test.h5", "train.h5"])
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
        self.assertEqual((plan["outputs"][0]["images"], plan["outputs"][0]["class_counts"]), (6, [3, 3]))
        self.assertIn("cat: 3", self.h5pack("folder", "photos", "-o", "out.h5", "--dry-run"))
        self.assertEqual(tree(self.dir), before)
        self.assertEqual(self.h5pack_json("folder", "photos", "-o", "out.h5")[0]["outputs"][0]["images"], 6)
        with h5py.File(self.dir / "out.h5") as file:
            options = json.loads(file.attrs["options"])
        self.assertEqual((options["command"], options["order"]), ("folder", "shuffled"))
        self.assertEqual(options["source"]["kind"], "folder")

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

    def test_celeba(self):
        attributes, partition, identity, landmarks, paths = sources.write_celeba(self.dir / "celeba", 24)
        self.h5pack("celeba", "celeba", "-o", "out")
        for number, split in enumerate(("train", "val", "test")):
            rows = np.flatnonzero(partition == number)
            with h5py.File(self.dir / "out" / f"{split}.h5") as file:
                for name, values in (("labels", attributes), ("identity", identity), ("landmarks", landmarks)):
                    np.testing.assert_array_equal(in_source_order(file, name), values[rows])
                self.assertEqual(self.names(file, "attribute_names"), sources.CELEBA_ATTRIBUTES)
                images = in_source_order(file, "images")
                self.assertEqual(images.shape, (len(rows), 218, 178, 3))
                for i, row in enumerate(rows):
                    np.testing.assert_array_equal(images[i], pillow_pixels(paths[row]))
        epoch = self.h5pack_json("stream", "out/train.h5", "--batch", 4, "--fields", "identity,landmarks")[0]
        self.assertEqual(epoch["images"], int((partition == 0).sum()))

    def test_csv_through_standard_input(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 3)
        text = "path,label\n" + "".join(f"photos/{name}/{i:03d}.jpg,{name}\n" for name in ("cat", "dog") for i in range(3))
        (self.dir / "list.csv").write_text(text)
        self.h5pack("csv", "list.csv", "-o", "file.h5")
        self.h5pack("csv", "-", "-o", "piped.h5", input=text)
        file, piped = arrays(self.dir / "file.h5"), arrays(self.dir / "piped.h5")
        for name in ("images", "labels"):
            np.testing.assert_array_equal(file[name], piped[name])
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
                self.assert_fails(["csv", "-", "-o", "new.h5"], reason, input=text)
                self.assertFalse((self.dir / "new.h5").exists())

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
                self.h5pack("folder", "photos", "-o", "out.h5", "--force", "--order", "source", *options)
                images = arrays(self.dir / "out.h5")["images"]
                self.assertEqual(images.shape, (2, *shape))
                if options[0] == "--pad":  # "wide" after "tall"
                    np.testing.assert_array_equal(images[1, 25:65, 5:85], picture(1, 40, 80))
                    self.assertEqual(images[1].sum(), picture(1, 40, 80).sum(dtype=np.int64))

    def test_orientation(self):
        (self.dir / "photos").mkdir()
        exif = Image.Exif()
        exif[0x0112] = 6  # to be turned by 90 degrees
        Image.fromarray(picture(5, 32, 48)).save(self.dir / "photos" / "a.jpg", quality=95, exif=exif)
        stored = pillow_pixels(self.dir / "photos" / "a.jpg")
        for option, expected in (("ignore", stored), ("apply", np.rot90(stored, -1))):
            self.h5pack("folder", "photos", "-o", f"{option}.h5", *(["--orientation", option] if option == "apply" else []))
            np.testing.assert_array_equal(arrays(self.dir / f"{option}.h5")["images"][0], expected)
