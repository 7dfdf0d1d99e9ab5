"""Packs that were stopped and are resumed: what goes on, what is refused, and what is left alone.

interrupted_test.py interrupts them at random.
"""

import json
import os
import pathlib
import shutil
import signal
import time

import numpy as np

import sources
from h5_contents import assert_contents, contents
from support import SKIPPED, STOPPED, CliTest, arrays, make_class_folder, make_photos_with_bad_names, tree


class ResumeTest(CliTest):
    def pack_with_bad_photos(self):
        """A command that packs such images into out.h5."""
        make_photos_with_bad_names(self.dir, 20, 15, (160, 120))
        return ["folder", "photos", "--chunk", 3, "--on-error", "skip", "-o", "out.h5"]

    def test_killed_between_commits(self):
        """Large enough that groups of chunks are committed on the way; SIGKILL gives no time to do so."""
        make_class_folder(self.dir / "photos", ["cat", "dog"], 100)
        pack = ["folder", "photos", "--resize", "600x600", "--chunk", 3, "--quiet", "--json"]
        self.h5pack(*pack, "-o", "reference.h5")
        reference = contents(self.dir / "reference.h5")
        journal = self.dir / "out.h5.partial.journal"

        def record_bytes():
            """What there is behind the header, which says how long it is."""
            if not journal.exists():
                return 0
            content = journal.read_bytes()
            return len(content) - (20 + int.from_bytes(content[12:20], "little") + 8)

        for size in (0, 2000):  # when the first groups are in the journal
            process = self.start([*pack, "-o", "out.h5"])
            while process.poll() is None and record_bytes() <= size:
                time.sleep(0.001)
            process.kill()
            self.end(process)
            self.assertFalse((self.dir / "out.h5").exists())
            said = json.loads(self.h5pack(*pack, "-o", "out.h5", "--resume"))["outputs"][0]
            self.assertGreater(said["resumed_images"], 0)
            assert_contents(self, self.dir / "out.h5", reference)
            (self.dir / "out.h5").unlink()

    def test_each_signal_stops_soon_and_tells_how_to_go_on(self):
        pack = self.pack_with_bad_photos()
        for number in STOPPED:
            with self.subTest(number):
                self.assertLess(self.stop_in_the_middle(pack, number)[0], 2)
                for path in self.dir.glob("out.h5*"):
                    path.unlink()

    def test_a_second_signal_ends_at_once_and_can_be_resumed(self):
        pack = self.pack_with_bad_photos()
        self.stop_in_the_middle(pack)
        process = self.start([*pack, "--resume"])
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        code, _, _ = self.end(process)
        self.assertIn(code, (130, 143, SKIPPED, -signal.SIGINT))
        self.assertIn(self.run_h5pack(*pack, "--resume").returncode, (0, SKIPPED))
        self.h5pack("verify", "out.h5")

    def test_what_changed_is_named(self):
        pack = self.pack_with_bad_photos()
        self.stop_in_the_middle(pack)
        resume = [*pack, "--resume"]
        for options, name in ((["--seed", 5], "--seed"), (["--order", "source"], "--order"),
                              (["--channels", "gray"], "--channels|channels"), (["--out-layout", "nchw"], "--out-layout|layout"),
                              (["--orientation", "apply"], "--orientation"), (["--max-pixels", 10**6], "--max-pixels"),
                              (["--resize", "160x120"], "--resize"), (["--center-crop", "160x120"], "--center-crop"),
                              (["--pad", "160x120"], "--pad"), (["--interpolation", "nearest"], "--interpolation")):
            with self.subTest(options):
                self.assert_refused([*resume, *options], 2, ["out.h5"], name)
        self.assert_refused(["folder", "photos", "--chunk", 4, "--on-error", "skip", "-o", "out.h5", "--resume"], 2,
                            ["out.h5"], "--chunk")
        touched = self.dir / "photos" / "cat" / "003_1.jpg"
        status = touched.stat()
        os.utime(touched, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        self.assert_refused(resume, 2, ["out.h5"], "sizes and times of the source files")
        # The file that was changed is named: 2033, in which no other one was.
        os.utime(touched, ns=(status.st_atime_ns, 2 * 10**18))
        self.assert_refused(resume, 2, ["out.h5"], 'newest of the source files" was "photos/.* and is now '
                            r'"photos/cat/003\S*\.jpg, changed 2033-05-18 03:33:20 UTC"')
        content = touched.read_bytes()
        touched.write_bytes(content + b"more")
        os.utime(touched, ns=(status.st_atime_ns, status.st_mtime_ns))
        self.assert_refused(resume, 2, ["out.h5"], r'bytes of the source files" was \d+ and is now \d+')
        touched.write_bytes(content)
        os.utime(touched, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.rename(touched, touched.with_name("003_renamed.jpg"))
        self.assert_refused(resume, 2, ["out.h5"], "digest of the names of the source files")
        os.rename(touched.with_name("003_renamed.jpg"), touched)
        # An image that had to be skipped is no reason to go on without skipping.
        fail = [argument for argument in resume if argument not in ("--on-error", "skip")]
        self.assertEqual(self.run_h5pack(*fail).returncode, 1)
        # And nothing of all that did any harm.
        self.assertEqual(self.run_h5pack(*resume, "--threads", 3, "--max-errors", 5000).returncode, SKIPPED)
        self.h5pack("verify", "out.h5")

    def test_a_leftover_is_not_touched_without_being_asked(self):
        pack = self.pack_with_bad_photos()
        self.stop_in_the_middle(pack)
        self.assert_refused(pack, 1, ["out.h5.partial"], r"--resume")
        self.assertEqual(self.run_h5pack(*pack, "--force").returncode, SKIPPED)
        self.assert_only_output()

    def test_a_running_pack_is_not_touched(self):
        pack = self.pack_with_bad_photos()
        process = self.start(pack)
        while not (self.dir / "out.h5.partial.journal").exists() and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGSTOP)
        try:
            for options in (["--resume"], ["--force"], []):
                self.assert_refused([*pack, *options], 1, ["out.h5.partial"], r"in use")
        finally:
            process.send_signal(signal.SIGCONT)
        self.assertEqual(self.end(process)[0], SKIPPED)
        self.h5pack("verify", "out.h5")

    def test_what_is_complete_is_left_alone(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 5)
        pack = ["folder", "photos", "-o", "out.h5"]
        self.h5pack(*pack, "--resume")  # nothing to resume: a fresh start
        before = tree(self.dir)
        self.assertIn("complete already, 10 images", self.h5pack(*pack, "--resume"))
        self.assertIn("complete already", self.h5pack(*pack, "--resume", "--force", "--threads", 1))
        self.assertEqual(tree(self.dir), before)
        self.assert_refused([*pack, "--resume", "--resize", "8x8"], 1, ["out.h5", "--resize", "8x8"], r"--force")
        self.h5pack(*pack, "--resize", "8x8", "--resume", "--force")
        self.assertEqual(arrays(self.dir / "out.h5")["images"].shape, (10, 8, 8, 3))
        self.write_h5("foreign.h5", images=np.zeros((4, 8, 8, 3), np.uint8))
        self.assert_refused(["folder", "photos", "-o", "foreign.h5", "--resume"], 1, ["foreign.h5"], r"--force")

    def test_splits_go_on_with_the_one_that_is_missing(self):
        make_photos_with_bad_names(self.dir, 20, 15, (160, 120))
        (self.dir / "splits").mkdir()
        make_class_folder(self.dir / "splits" / "train", ["cat", "dog"], 3, 160, 120)
        (self.dir / "splits" / "train" / "cat" / "bad.jpg").write_bytes(b"no image")
        os.rename(self.dir / "photos", self.dir / "splits" / "test")
        pack = ["folder", "splits", "--chunk", 3, "--on-error", "skip", "-o", "out", "--report", "bad.jsonl"]
        self.assertEqual(self.run_h5pack(*pack).returncode, SKIPPED)
        reference = [contents(self.dir / "out" / f"{split}.h5") for split in ("train", "test")]
        report = (self.dir / "bad.jsonl").read_text()
        self.assertIn('"split":"train"', report)
        for path in (self.dir / "out").iterdir():
            path.unlink()
        os.unlink(self.dir / "bad.jsonl")
        # Train is complete at once, and the pack stops in test.
        self.stop_in_the_middle([*pack, "--resume"], output="out/test.h5")
        self.assertTrue((self.dir / "out" / "train.h5").exists())
        result = self.run_h5pack(*pack, "--resume")
        self.assertEqual(result.returncode, SKIPPED, result.stderr)
        self.assertIn("train.h5: complete already", result.stdout)
        for split, expected in zip(("train", "test"), reference):
            assert_contents(self, self.dir / "out" / f"{split}.h5", expected)
        self.assertEqual((self.dir / "bad.jsonl").read_text(), report)
        # Nor does it lose what it says of a later split when an earlier one is packed again.
        (self.dir / "out" / "train.h5").unlink()
        self.assertEqual(self.run_h5pack(*pack, "--resume").returncode, SKIPPED)
        self.assertEqual(sorted((self.dir / "bad.jsonl").read_text().splitlines()), sorted(report.splitlines()))

    def test_shards(self):
        """A shard goes on as itself, and as no other; what was skipped before stays skipped."""
        make_photos_with_bad_names(self.dir, 20, 15, (160, 120))
        pack = ["folder", "photos", "--chunk", 3, "--on-error", "skip"]
        first, second = "out-00000-of-00002.h5", "out-00001-of-00002.h5"
        for i in range(2):
            result = self.run_h5pack(*pack, "-o", "reference.h5", "--shard", f"{i}/2")
            self.assertEqual(result.returncode, SKIPPED, result.stderr)
        self.stop_in_the_middle([*pack, "-o", "out.h5", "--shard", "1/2"], output=second)
        for path in list(self.dir.glob("out-00001*")):
            shutil.copy(path, self.dir / path.name.replace("00001-of", "00000-of"))
        self.assert_refused([*pack, "-o", "out.h5", "--shard", "0/2", "--resume"], 2, [first, "--shard"],
                            '"1/2" and is now "0/2"')
        self.assertEqual(self.run_h5pack(*pack, "-o", "out.h5", "--shard", "0/2", "--force").returncode, SKIPPED)
        result, = self.h5pack_json(*pack, "-o", "out.h5", "--shard", "1/2", "--resume", code=SKIPPED)
        self.assertGreater(result["outputs"][0]["resumed_images"], 0)
        for name in (first, second):
            assert_contents(self, self.dir / name, contents(self.dir / name.replace("out", "reference")))
        again = self.run_h5pack(*pack, "-o", "out.h5", "--shard", "1/2", "--resume")
        self.assertEqual(again.returncode, SKIPPED)
        self.assertRegex(again.stdout, second + r": complete already, \d+ images, \d+ skipped")
        report, = self.h5pack_json("stream", "out-*-of-00002.h5", "--digest")
        whole, = self.h5pack_json("stream", "reference-*-of-00002.h5", "--digest")
        self.assertEqual(report["pixel_digest"], whole["pixel_digest"])

    def check_source(self, *pack, output):
        """Stops a pack of one more kind of source and resumes it."""
        self.h5pack(*pack, "-o", "reference")
        self.stop_in_the_middle([*pack, "-o", "out", "--resume"], output=output)
        self.h5pack(*pack, "-o", "out", "--resume")
        out, reference = self.dir / "out", self.dir / "reference"
        names = sorted(p.name for p in reference.iterdir()) if reference.is_dir() else [""]
        self.assertEqual(sorted(p.name for p in out.iterdir()) if out.is_dir() else [""], names)
        for name in names:
            assert_contents(self, out / name, contents(reference / name))

    def test_cifar(self):
        sources.write_cifar10(self.dir / "cifar", per_batch=400)
        self.check_source("cifar", "cifar", "--chunk", 1, output="out/train.h5")

    def test_celeba(self):
        sources.write_celeba(self.dir / "celeba", 300)
        self.check_source("celeba", "celeba", "--chunk", 1, output="out/train.h5")

    def test_csv(self):
        samples = make_class_folder(self.dir / "photos", ["cat", "dog"], 10, 160, 120)
        rows = "".join(f"{pathlib.Path(path).relative_to(self.dir)},{label}\n" for path, label in samples)
        (self.dir / "list.csv").write_text("path,label\n" + rows * 30)
        self.check_source("csv", "list.csv", "--chunk", 1, output="out")
