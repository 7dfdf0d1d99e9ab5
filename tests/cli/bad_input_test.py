"""Bad input: one clear line that names the file and the hint, the right exit code, no trace."""

import json
import os
import resource
import shutil
import subprocess

import numpy as np

from support import CliTest, arrays, make_class_folder, picture, tree, write_picture


class BadPicturesTest(CliTest):
    def setUp(self):
        super().setUp()
        make_class_folder(self.dir / "photos", ["cat", "dog"], 5)
        self.pack = ["folder", "photos", "-o", "out.h5"]
        self.victim = self.dir / "photos" / "dog" / "002.jpg"

    def test_pictures_named_otherwise_than_they_are(self):
        self.assertNotIn("warning", self.run_h5pack(*self.pack).stderr)
        png = write_picture(self.dir / "other.png", 5)
        for name in ("cat/003.jpg", "dog/001.jpg"):
            shutil.copy(png, self.dir / "photos" / name)
        result = self.run_h5pack(*self.pack, "--force", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["outputs"][0]["misnamed_images"], 2)
        self.assertRegex(result.stderr, r"warning: 2 images are not what .* 'photos/cat/003.jpg' holds PNG")
        out = arrays(self.dir / "out.h5")
        np.testing.assert_array_equal(out["images"][list(out["source_index"]).index(3)], picture(5))

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
        self.assert_fails(["folder", "deep", "-o", "deep.h5"],
                          r"cannot examine 'deep/cat/ddd.*too long; start in a folder nearer")
        self.assertFalse((self.dir / "deep.h5").exists())
        subprocess.run(["rm", "-rf", self.dir / "deep"], check=True)  # Python's own way ends at such a path

    def test_what_may_not_be_read(self):
        self.let_nobody_write(self.dir)
        for path in (self.victim, self.victim.parent):
            path.chmod(0)
            self.assert_refused(self.pack, 1, [path.relative_to(self.dir)], r"[Pp]ermission", unprivileged=True)
            path.chmod(0o755)


class BadOutputTest(CliTest):
    def setUp(self):
        super().setUp()
        make_class_folder(self.dir / "photos", ["cat", "dog"], 3)

    def test_outputs_that_cannot_be(self):
        for split in ("train", "test"):
            make_class_folder(self.dir / "splits" / split, ["cat", "dog"], 2)
        for folder in ("folder.h5", "locked", "out"):
            (self.dir / folder).mkdir()
        (self.dir / "locked").chmod(0o555)
        for name in ("old.h5", "out/test.h5", "file"):
            (self.dir / name).write_bytes(b"the only copy of something")
        for source, output, way_out in (("photos", "old.h5", r"--force"), ("splits", "out", r"test\.h5.*--force"),
                                        ("photos", "no/such/out.h5", r"make it first|choose another"),
                                        ("photos", "locked/out.h5", r"[Pp]ermission|writ"),
                                        ("photos", "folder.h5", r"folder"), ("splits", "file", r"folder")):
            with self.subTest(output):
                self.assert_refused(["folder", source, "-o", output], 1, [output.removesuffix("/out.h5")], way_out,
                                    unprivileged="locked" in output)
        # --force replaces what is there, unless the run fails.
        self.h5pack("folder", "photos", "-o", "old.h5", "--force")
        self.assertEqual(arrays(self.dir / "old.h5")["images"].shape, (6, 32, 32, 3))
        (self.dir / "photos" / "dog" / "001.jpg").write_bytes(b"")
        self.assert_refused(["folder", "photos", "-o", "old.h5", "--force"], 1, ["001.jpg"], r"remove or replace")

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
                self.assert_fails([*arguments, "--force"], r"pipe\.png.* not a regular file")
                self.assertTrue((self.dir / "pipe.png").is_fifo())

    def test_file_size_limit_leaves_no_sheet_behind(self):
        self.h5pack("folder", "photos", "-o", "out.h5")
        before = tree(self.dir)
        self.assert_fails(["preview", "out.h5", "-o", "sheet.png"], "File too large",
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
        self.assertEqual(tree(self.dir), before)

    def test_sheet_output(self):
        self.h5pack("folder", "photos", "-o", "out.h5")
        (self.dir / "sheet.png").write_bytes(b"precious")
        (self.dir / "folder.png").mkdir()
        (self.dir / "locked").mkdir()
        (self.dir / "locked").chmod(0o555)
        for output, way_out in (("sheet.png", "--force"), ("no/such.png", "create"), ("folder.png", "-o"),
                                ("locked/a.png", "may write")):
            self.assert_refused(["preview", "out.h5", "-o", output], 1, [output.removesuffix("/a.png")], way_out,
                                unprivileged="locked" in output)


class BadTablesTest(CliTest):
    """What else can be wrong with tables and archives the unit tests of their sources try."""

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


class BadFilesTest(CliTest):
    """Files that info, stream and preview are pointed at."""

    def setUp(self):
        super().setUp()
        self.let_nobody_write(self.dir)

    def refused_by_all(self, name, names, way_out, code=1, options=()):
        for command in (["info", name], ["stream", name], ["preview", name, "-o", "sheet.png"]):
            with self.subTest(name, command=command[0]):
                self.assert_refused([*command, *options], code, [name, *names], way_out, unprivileged=True)

    def test_files_that_cannot_be_read(self):
        self.write_h5("secret.h5", images=np.zeros((4, 8, 8, 3), np.uint8))
        whole = (self.dir / "secret.h5").read_bytes()
        for name, content in (("half.h5", whole[:len(whole) // 2]), ("shorter.h5", whole[:-1]), ("text.h5", b"no" * 99)):
            (self.dir / name).write_bytes(content)
        (self.dir / "secret.h5").chmod(0)
        for name, way_out in (("gone.h5", "No such file"), ("secret.h5", "[Pp]ermission"), ("half.h5", "truncated|ends"),
                              ("shorter.h5", "truncated|ends"), ("text.h5", "HDF5")):
            self.refused_by_all(name, [], way_out)

    def test_files_without_what_is_asked_for(self):
        self.write_h5("other.h5", temperature=np.zeros((10, 3)), wind=np.zeros((10, 2)), labels=np.arange(10))
        self.write_h5("odd.h5", images=np.zeros((4, 8, 8, 8), np.uint8))
        self.write_h5("some.h5", images=np.stack([picture(i) for i in range(64)]), boxes=np.zeros((64, 4), np.float32))
        self.refused_by_all("other.h5", ["temperature", "wind"], "--images|images")
        self.refused_by_all("odd.h5", ["layout"], r"--layout|layout", code=2)
        self.refused_by_all("some.h5", ["pictures"], r"images|--images", options=["--images", "pictures"])
        self.assert_refused(["stream", "some.h5", "--fields", "masks"], 1, ["some.h5", "masks"], r"boxes")
        self.assert_refused(["stream", "some.h5", "--memory-budget", "64KiB"], 1, [], r"\d.*memory.budget|memory.budget.*\d")
