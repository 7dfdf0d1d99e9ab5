"""Bad input: one clear line that names the file and the hint, the right exit code, no trace."""

import json
import os
import resource
import shutil
import subprocess
import unittest

import h5py
import numpy as np

import sources
from support import CliTest, make_class_folder, picture, tree, write_picture


class BadPicturesTest(CliTest):
    def setUp(self):
        super().setUp()
        self.samples = make_class_folder(self.dir / "photos", ["cat", "dog"], 5)
        self.pack = ["folder", "photos", "-o", "out.h5"]
        self.victim = self.dir / "photos" / "dog" / "002.jpg"

    def test_missing_folder(self):
        self.assert_refused(["folder", "nowhere", "-o", "out.h5"], 1, ["nowhere"], r"No such file or directory; give a folder")

    def test_a_file_instead_of_a_folder(self):
        self.assert_refused(["folder", "photos/cat/000.jpg", "-o", "out.h5"], 1, ["000.jpg"], r"csv")

    def test_empty_folder(self):
        (self.dir / "empty").mkdir()
        self.assert_refused(["folder", "empty", "-o", "out.h5"], 1, ["empty"], r"give a folder")

    def test_class_without_pictures(self):
        (self.dir / "photos" / "horse").mkdir()
        self.assert_refused(self.pack, 1, ["horse", "photos"], r"add some|remove")

    def test_zero_byte_file(self):
        self.victim.write_bytes(b"")
        self.assert_refused(self.pack, 1, ["photos/dog/002.jpg", "0 bytes"], r"remove or replace")

    def test_truncated_jpeg(self):
        whole = self.victim.read_bytes()
        for length in (len(whole) // 2, len(whole) - 2, 20, 2):
            with self.subTest(length):
                self.victim.write_bytes(whole[:length])
                self.assert_refused(self.pack, 1, ["photos/dog/002.jpg"],
                                    r"Premature end.*remove the file")

    def test_text_file_named_jpg(self):
        self.victim.write_text("These are not the pixels you are looking for.\n" * 9)
        self.assert_refused(self.pack, 1, ["photos/dog/002.jpg"], r"not an image by its contents")

    def test_truncated_png(self):
        path = write_picture(self.dir / "photos" / "dog" / "009.png", 99)
        path.write_bytes(path.read_bytes()[:-30])
        self.assert_refused(self.pack, 1, ["photos/dog/009.png"], r"remove the file")

    def test_pictures_named_otherwise_than_they_are(self):
        self.assertNotIn("warning", self.run_h5pack(*self.pack).stderr)
        self.assertEqual(self.h5pack_json(*self.pack, "--force")[0]["outputs"][0]["misnamed_images"], 0)
        png = write_picture(self.dir / "other.png", 5)
        for name in ("cat/003.jpg", "dog/001.jpg"):
            shutil.copy(png, self.dir / "photos" / name)
        result = self.run_h5pack(*self.pack, "--force", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["outputs"][0]["misnamed_images"], 2)
        self.assertRegex(result.stderr, r"warning: 2 images are not what .* 'photos/cat/003.jpg' holds PNG")
        with h5py.File(self.dir / "out.h5") as file:
            row = list(file["source_index"]).index(3)
            np.testing.assert_array_equal(file["images"][row], picture(5))

    def test_long_paths(self):
        """Up to the 4,096 bytes of the system they are packed, and beyond them nothing is left out in silence."""
        def nest(root, length):
            """An image whose path from the scratch folder has about `length` bytes."""
            write_picture(self.dir / root / "cat" / "near.jpg", 1)
            here = os.open(self.dir / root / "cat", os.O_RDONLY)
            for _ in range((length - len(root)) // 201):
                os.mkdir("d" * 200, dir_fd=here)
                here, above = os.open("d" * 200, os.O_RDONLY, dir_fd=here), here
                os.close(above)
            far = os.open("far.jpg", os.O_WRONLY | os.O_CREAT, dir_fd=here)
            os.write(far, (self.dir / root / "cat" / "near.jpg").read_bytes())
            os.close(far)
            os.close(here)

        nest("long", 4030)
        self.assertEqual(self.h5pack_json("folder", "long", "-o", "out.h5")[0]["outputs"][0]["images"], 2)
        nest("deep", 5000)
        result = self.run_h5pack("folder", "deep", "-o", "deep.h5")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"cannot examine 'deep/cat/ddd.*too long; start in a folder nearer")
        self.assertFalse((self.dir / "deep.h5").exists())
        subprocess.run(["rm", "-rf", self.dir / "deep"], check=True)  # Python's own way ends at such a path

    def test_unreadable_file(self):
        self.victim.chmod(0)
        self.let_nobody_write(self.dir)
        self.assert_refused(self.pack, 1, ["photos/dog/002.jpg"], r"[Pp]ermission", unprivileged=True)

    def test_unreadable_folder(self):
        (self.dir / "photos" / "dog").chmod(0)
        self.let_nobody_write(self.dir)
        self.addCleanup((self.dir / "photos" / "dog").chmod, 0o755)
        self.assert_refused(self.pack, 1, ["photos/dog"], r"[Pp]ermission", unprivileged=True)

    def test_pictures_of_different_sizes(self):
        write_picture(self.victim, 77, height=40, width=24)
        message = self.assert_refused(self.pack, 1, ["photos/dog/002.jpg", "--resize"], r"40|24")
        self.assertGreaterEqual(message.count(".jpg"), 2, "two images should be named")

    def test_crop_larger_than_a_picture(self):
        self.assert_refused([*self.pack, "--center-crop", "64x64"], 1, ["32x32", "64x64", ".jpg"],
                            r"--resize can enlarge")

    def test_dangling_link(self):
        self.victim.unlink()
        self.victim.symlink_to("gone.jpg")
        self.assert_refused(self.pack, 1, ["photos/dog/002.jpg"], r"link")


class BadOutputTest(CliTest):
    def setUp(self):
        super().setUp()
        make_class_folder(self.dir / "photos", ["cat", "dog"], 3)

    def test_existing_output_is_kept(self):
        (self.dir / "out.h5").write_bytes(b"the only copy of something")
        self.assert_refused(["folder", "photos", "-o", "out.h5"], 1, ["out.h5"], r"--force")
        self.h5pack("folder", "photos", "-o", "out.h5", "--force")
        with h5py.File(self.dir / "out.h5") as file:
            self.assertEqual(file["images"].shape, (6, 32, 32, 3))

    def test_force_replaces_no_input(self):
        picture = "photos/dog/001.jpg"
        (self.dir / "list.csv").write_text(f"path\n{picture}\n")
        (self.dir / "alias").symlink_to("photos")
        for arguments in (["folder", "photos", "-o", picture], ["folder", "alias", "-o", picture],
                          ["csv", "list.csv", "-o", picture], ["csv", "list.csv", "-o", "./list.csv"]):
            with self.subTest(arguments):
                self.assert_refused([*arguments, "--force"], 1, [arguments[-1]], r"one of the inputs")
        # Nor what an output is written to first.
        for suffix in (".partial", ".partial.journal"):
            (self.dir / f"out.h5{suffix}").write_text(f"path\n{picture}\n")
            for option in ("--force", "--resume", "--quiet"):
                with self.subTest(suffix=suffix, option=option):
                    self.assert_refused(["csv", f"out.h5{suffix}", "-o", "out.h5", option], 1, [f"out.h5{suffix}"],
                                        r"one of the inputs")
            os.unlink(self.dir / f"out.h5{suffix}")

    def test_force_replaces_no_device(self):
        self.h5pack("folder", "photos", "-o", "out.h5")
        os.mkfifo(self.dir / "pipe.png")
        for arguments in (["folder", "photos", "-o", "pipe.png"], ["preview", "out.h5", "-o", "pipe.png"]):
            with self.subTest(arguments):
                result = self.run_h5pack(*arguments, "--force", "--quiet")
                self.assertEqual(result.returncode, 1)
                self.assertRegex(result.stderr, r"pipe\.png.* not a regular file")
                self.assertTrue((self.dir / "pipe.png").is_fifo())

    def test_file_size_limit_leaves_no_sheet_behind(self):
        self.h5pack("folder", "photos", "-o", "out.h5")
        before = tree(self.dir)
        result = self.run_h5pack("preview", "out.h5", "-o", "sheet.png", preexec_fn=lambda: (
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))))
        self.assertEqual(result.returncode, 1)
        self.assertIn("File too large", result.stderr)
        self.assertEqual(tree(self.dir), before)

    def test_failing_with_force_keeps_the_existing_output(self):
        (self.dir / "out.h5").write_bytes(b"the only copy of something")
        (self.dir / "photos" / "dog" / "001.jpg").write_bytes(b"")
        self.assert_refused(["folder", "photos", "-o", "out.h5", "--force"], 1, ["001.jpg"], r"remove or replace")

    def test_existing_split_is_kept(self):
        for split in ("train", "test"):
            make_class_folder(self.dir / "splits" / split, ["cat", "dog"], 2)
        (self.dir / "out").mkdir()
        (self.dir / "out" / "test.h5").write_bytes(b"precious")
        self.assert_refused(["folder", "splits", "-o", "out"], 1, ["test.h5"], r"--force")

    def test_missing_output_folder(self):
        self.assert_refused(["folder", "photos", "-o", "no/such/out.h5"], 1, ["no/such"],
                            r"make it first|choose another")

    def test_output_folder_not_writable(self):
        (self.dir / "locked").mkdir()
        (self.dir / "locked").chmod(0o555)
        self.assert_refused(["folder", "photos", "-o", "locked/out.h5"], 1, ["locked"],
                            r"[Pp]ermission|writ", unprivileged=True)

    def test_output_is_a_folder(self):
        (self.dir / "out.h5").mkdir()
        self.assert_refused(["folder", "photos", "-o", "out.h5"], 1, ["out.h5"], r"folder")

    def test_output_of_splits_is_a_file(self):
        for split in ("train", "test"):
            make_class_folder(self.dir / "splits" / split, ["cat", "dog"], 2)
        (self.dir / "out").write_bytes(b"precious")
        self.assert_refused(["folder", "splits", "-o", "out"], 1, ["out"], r"folder")

    def test_sheet_output(self):
        self.h5pack("folder", "photos", "-o", "out.h5")
        (self.dir / "sheet.png").write_bytes(b"precious")
        (self.dir / "folder.png").mkdir()
        (self.dir / "locked").mkdir()
        (self.dir / "locked").chmod(0o555)
        self.assert_refused(["preview", "out.h5", "-o", "sheet.png"], 1, ["sheet.png"], r"--force")
        self.assert_refused(["preview", "out.h5", "-o", "no/such.png"], 1, ["no/such.png"], r"create")
        self.assert_refused(["preview", "out.h5", "-o", "folder.png"], 1, ["folder.png"], r"-o")
        self.assert_refused(["preview", "out.h5", "-o", "locked/a.png"], 1, ["locked"],
                            r"may write", unprivileged=True)


class BadTablesTest(CliTest):
    def test_csv_row_with_a_missing_file(self):
        make_class_folder(self.dir / "photos", ["cat"], 2)
        (self.dir / "list.csv").write_text(
            "path,label\nphotos/cat/000.jpg,cat\nphotos/cat/777.jpg,cat\n")
        self.assert_refused(["csv", "list.csv", "-o", "out.h5"], 1,
                            ["list.csv", "line 3", "photos/cat/777.jpg"], r"--root")

    def test_csv_without_a_header(self):
        """Its first image would be taken for one, and be missing."""
        for text in ("photos/cat/000.jpg\nphotos/dog/000.jpg\n", "photos/cat/000.jpg,cat\nphotos/dog/000.jpg,dog\n",
                     "0,photos/cat/000.jpg\n1,photos/dog/000.jpg\n", "gone.png,cat\nphotos/dog/000.jpg,dog\n"):
            with self.subTest(text):
                (self.dir / "list.csv").write_text(text)
                self.assert_refused(["csv", "list.csv", "-o", "out.h5"], 1, ["list.csv", "no header"], r"path,label")

    def test_labels_with_fractions_are_told_to_be_names(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 1)
        (self.dir / "list.csv").write_text("path,label\nphotos/cat/000.jpg,10.5\nphotos/dog/000.jpg,9\n")
        result = self.run_h5pack("csv", "list.csv", "-o", "out.h5")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"note: column 'label' of 'list\.csv' has numbers with a fraction.*sorted as text")

    def test_csv_problems(self):
        make_class_folder(self.dir / "photos", ["cat"], 2)
        cases = [
            ("", [], 1, ["list.csv"]),
            ("path,label\n", [], 1, ["list.csv"]),
            ("path,label\nphotos/cat/000.jpg\n", [], 1, ["list.csv", "line 2"]),
            ("path,label\nphotos/cat/000.jpg,\n", [], 1, ["list.csv", "line 2"]),
            ('path,label\n"photos/cat/000.jpg,cat\n', [], 1, ["list.csv", "line 2"]),
            ("path,label\nphotos/cat/000.jpg\0,cat\n", [], 1, ["list.csv", "zero bytes"]),
            ("path,label\nphotos/cat/000.jpg,cat\n", ["--label-column", "kind"], 2, ["kind", "label"]),
        ]
        for text, options, code, names in cases:
            with self.subTest(text):
                (self.dir / "list.csv").write_text(text)
                self.assert_refused(["csv", "list.csv", "-o", "out.h5", *options], code, names, r"\w")
        self.assert_refused(["csv", "none.csv", "-o", "out.h5"], 1, ["none.csv"], r"No such|no file")

    def test_cifar_batch_cut_short(self):
        sources.write_cifar10(self.dir / "cifar")
        batch = self.dir / "cifar" / "data_batch_3.bin"
        whole = batch.read_bytes()
        pack = ["cifar", "cifar", "-o", "out"]
        batch.write_bytes(whole[:-1])
        self.assert_refused(pack, 1, ["data_batch_3.bin"], r"unpack")
        batch.write_bytes(whole[:-3073])  # a whole record less
        self.assert_refused(pack, 1, ["data_batch_3.bin"], r"unpack")
        batch.write_bytes(b"\x0a" + whole[1:])  # label 10
        self.assert_refused(pack, 1, ["data_batch_3.bin"], r"label 10")
        batch.unlink()
        self.assert_refused(pack, 1, ["data_batch_3.bin"], r"unpack")
        self.assert_refused(["cifar", "nowhere", "-o", "out"], 1, ["nowhere"], r"no folder")

    def test_cifar100_batch_cut_short(self):
        sources.write_cifar100(self.dir / "cifar")
        batch = self.dir / "cifar" / "train.bin"
        batch.write_bytes(batch.read_bytes()[:-5])
        self.assert_refused(["cifar", "cifar", "-o", "out"], 1, ["train.bin"], r"unpack")

    def test_attribute_table_with_a_wrong_count(self):
        sources.write_celeba(self.dir / "celeba", 8, size=(22, 18))
        table = self.dir / "celeba" / "list_attr_celeba.txt"
        whole = table.read_text()
        pack = ["celeba", "celeba", "-o", "out"]
        table.write_text(whole.replace("8\n", "9\n", 1))
        self.assert_refused(pack, 1, ["list_attr_celeba.txt", "9", "8"], r"download|edited")
        lines = whole.splitlines()
        table.write_text("\n".join(lines[:4] + [lines[4][:-3]] + lines[5:]) + "\n")
        self.assert_refused(pack, 1, ["list_attr_celeba.txt", "line 5"], r"39|values")
        table.write_text("\n".join(["7"] + lines[1:-1]) + "\n")
        self.assert_refused(pack, 1, ["list_attr_celeba.txt", lines[-1].split()[0]],
                            r"download|remove")
        table.write_text(whole)
        (self.dir / "celeba" / "img_align_celeba" / "000003.jpg").unlink()
        self.assert_refused(pack, 1, ["list_attr_celeba.txt", "000003.jpg"], r"unpack|remove")


class BadFilesTest(CliTest):
    """Files that info, stream and preview are pointed at."""

    def refused_by_all(self, name, names, way_out, code=1, options=()):
        for command in (["info", name], ["stream", name], ["preview", name, "-o", "sheet.png"]):
            with self.subTest(command[0]):
                self.assert_refused([*command, *options], code, [name, *names], way_out)

    def test_no_such_file(self):
        self.refused_by_all("gone.h5", [], r"No such|does not exist|no such|no file")

    def test_a_folder(self):
        (self.dir / "folder.h5").mkdir()
        self.refused_by_all("folder.h5", [], r"folder|directory|regular")

    def test_not_hdf5(self):
        (self.dir / "text.h5").write_text("not an HDF5 file\n" * 100)
        self.refused_by_all("text.h5", [], r"HDF5")
        (self.dir / "empty.h5").write_bytes(b"")
        self.refused_by_all("empty.h5", [], r"HDF5|empty")
        write_picture(self.dir / "picture.h5.jpg", 1)
        self.refused_by_all("picture.h5.jpg", [], r"HDF5")

    def test_no_suitable_dataset(self):
        with h5py.File(self.dir / "other.h5", "w") as file:
            file["temperature"] = np.zeros((10, 3))
            file["labels"] = np.arange(10)
        self.refused_by_all("other.h5", ["temperature"], r"uint8|4-D|picture")

    def test_no_dataset_of_that_name(self):
        with h5py.File(self.dir / "some.h5", "w") as file:
            file["images"] = np.zeros((4, 8, 8, 3), np.uint8)
        self.refused_by_all("some.h5", ["pictures"], r"images|--images", options=["--images", "pictures"])

    def test_layout_that_cannot_be_told(self):
        with h5py.File(self.dir / "odd.h5", "w") as file:
            file["images"] = np.zeros((4, 8, 8, 8), np.uint8)
        self.refused_by_all("odd.h5", ["layout"], r"--layout|layout", code=2)

    def test_truncated_file(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 20)
        self.h5pack("folder", "photos", "-o", "whole.h5", "--chunk", "8")
        whole = (self.dir / "whole.h5").read_bytes()
        for share in (0.02, 0.5, 0.9):
            (self.dir / "cut.h5").write_bytes(whole[:int(len(whole) * share)])
            self.refused_by_all("cut.h5", [], r"truncated|cut|short|ends|incomplete")
        (self.dir / "cut.h5").write_bytes(whole[:-1])
        self.refused_by_all("cut.h5", [], r"truncated|cut|short|ends|incomplete")

    def test_unreadable_file(self):
        with h5py.File(self.dir / "secret.h5", "w") as file:
            file["images"] = np.zeros((4, 8, 8, 3), np.uint8)
        (self.dir / "secret.h5").chmod(0)
        self.assert_refused(["info", "secret.h5"], 1, ["secret.h5"], r"[Pp]ermission", unprivileged=True)

    def test_memory_budget_too_small(self):
        with h5py.File(self.dir / "some.h5", "w") as file:
            file["images"] = np.stack([picture(i) for i in range(64)])
        message = self.assert_refused(["stream", "some.h5", "--memory-budget", "64KiB"], 1, [],
                                      r"memory_budget|--memory-budget")
        self.assertRegex(message, r"\d")

    def test_unknown_field(self):
        with h5py.File(self.dir / "some.h5", "w") as file:
            file["images"] = np.zeros((4, 8, 8, 3), np.uint8)
            file["boxes"] = np.zeros((4, 4), np.float32)
        self.assert_refused(["stream", "some.h5", "--fields", "masks"], 1, ["some.h5", "masks"],
                            r"boxes")


if __name__ == "__main__":
    unittest.main()
