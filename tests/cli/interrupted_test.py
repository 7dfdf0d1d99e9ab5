"""Packs, repack and append that are killed or stopped at random moments, and run again until they are through.

CHUNKIO_TEST_ROUNDS: how often each is brought through (default 4). CHUNKIO_TEST_SEED repeats a run.
"""

import json
import os
import random
import signal
import time

import h5py
import numpy as np

from h5_contents import assert_contents, contents
from support import SKIPPED, STOPPED, CliTest, make_class_folder, make_photos_with_bad_names

ROUNDS = int(os.environ.get("CHUNKIO_TEST_ROUNDS") or 4)
SEED = int(os.environ.get("CHUNKIO_TEST_SEED") or time.time_ns() % 2**32)


class InterruptedTest(CliTest):
    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        print(f"CHUNKIO_TEST_SEED={SEED}")
        pixels = np.random.default_rng(3).integers(0, 8, (1500, 40, 40, 3), np.uint8)
        self.write_h5("foreign.h5", images={"data": pixels, "chunks": (7, 40, 40, 3)}, labels=np.arange(1500) % 4)

    def reference(self, command, code=0):
        """What `command` makes of out.h5, which is gone again."""
        result = self.run_h5pack(*command)
        self.assertEqual(result.returncode, code, result.stderr)
        found = contents(self.dir / "out.h5")
        (self.dir / "out.h5").unlink()
        return found

    def stopped_as_it_begins(self, command, number):
        process = self.start(command)
        while not (self.dir / "out.h5.partial").exists() and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(number)
        return self.end(process)

    def report(self):
        """What --report says of images that were left out."""
        path = self.dir / "bad.jsonl"
        return path.read_text() if path.exists() else None

    def bring_through(self, command, reference, usual, done):
        """Runs `command`, which takes `usual` seconds, with --resume, and interrupts it until out.h5 is there.

        Checks that it holds `reference` and removes it. Returns how many images the last run found written.
        """
        chance = self.random
        for attempt in range(100):
            process = self.start([*command, "--resume", "--json", "--threads", chance.choice((1, 2, 5))])
            if attempt < 5:  # then it is left alone
                time.sleep(chance.uniform(0, usual))
                process.send_signal(chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)))
            code, out, errors = self.end(process)
            if code == done:
                break
            # A signal before there is anything to tidy up just kills.
            self.assertIn(code, (130, 143, -signal.SIGKILL, -signal.SIGINT, -signal.SIGTERM), errors)
            if (self.dir / "out.h5").exists():  # killed after it was published
                assert_contents(self, self.dir / "out.h5", reference)
        assert_contents(self, self.dir / "out.h5", reference)
        self.assert_only_output()
        (self.dir / "out.h5").unlink()
        return json.loads(out)["outputs"][0].get("resumed_images", 0)

    def bring_through_often(self, command, done=0, resumes=True):
        """Interrupts `command`, which ends with the code `done`, again and again: it comes to the same file.

        resumes: whether it goes on with what was written; None: these images are so few that they come all at once.
        """
        command = [*command, "-o", "out.h5"]
        began = time.monotonic()
        reference = self.reference([*command, "--force"], done)
        usual = time.monotonic() - began
        report = self.report()
        resumed = rounds = 0
        # On a busy machine the signals of all may come before the first chunk is written.
        while rounds < ROUNDS or (resumes and resumed == 0 and rounds < 60):
            rounds += 1
            resumed += self.bring_through(command, reference, usual, done)
            self.assertEqual(self.report(), report)
        if resumes is not None:
            self.assertEqual(resumed > 0, resumes, "what was written before")

    def test_pack(self):
        make_photos_with_bad_names(self.dir, 20, 15, (160, 120))
        for options in (["--chunk", 3], ["--chunk", 64, "--order", "source", "--out-layout", "nchw"],
                        ["--chunk", 1, "--seed", 5, "--resize", "200x300"]):
            with self.subTest(options):
                self.bring_through_often(["folder", "photos", "--on-error", "skip", "--report", "bad.jsonl", *options],
                                         SKIPPED)

    def test_pack_encoded(self):
        make_photos_with_bad_names(self.dir, 20, 15, (160, 120))
        for options in ([], ["--order", "source", "--max-side", 50]):
            with self.subTest(options):
                self.bring_through_often(["folder", "photos", "--store", "encoded", "--on-error", "skip", "--report",
                                          "bad.jsonl", *options], SKIPPED)

    def test_repack_encoded(self):
        for options in (["--encode", "png", "--rows", "0:400"], ["--encode", "jpeg", "--order", "shuffled"]):
            with self.subTest(options):
                self.bring_through_often(["repack", "foreign.h5", *options], resumes=None)
        self.h5pack("repack", "foreign.h5", "-o", "encoded.h5", "--encode", "png")
        self.bring_through_often(["repack", "encoded.h5", "--order", "shuffled", "--rows", "3:1400"], resumes=None)

    def test_repack(self):
        for options in ([], ["--order", "shuffled", "--memory-budget", "6MiB"], ["--rows", "100:1400,1450"]):
            with self.subTest(options):
                self.bring_through_often(["repack", "foreign.h5", "--chunk", 2, *options])

    def test_repack_with_a_filter(self):
        self.bring_through_often(["repack", "foreign.h5", "--chunk", 5, "--filter", "deflate:9"], resumes=False)

    def make_append(self):
        """The command; its file has 500 rows, and 300 come behind them."""
        make_class_folder(self.dir / "photos", ["cat", "dog"], 150, 40, 40)
        with h5py.File(self.dir / "foreign.h5", "r+") as file:
            del file["labels"]
            file["labels"] = np.arange(1500) % 2
        self.h5pack("repack", "foreign.h5", "-o", "old.h5", "--rows", "0:500")
        (self.dir / "list.csv").write_text(
            "path,label\n" + "".join(f"photos/{name}/{i:03d}.jpg,{label}\n"
                                     for label, name in enumerate(("cat", "dog")) for i in range(150)))
        return ["append", "old.h5", "csv", "list.csv"]

    def test_append(self):
        append = self.make_append()
        for options in (["--chunk", 2], ["--chunk", 2, "--order", "shuffled"], ["--chunk", 100]):
            with self.subTest(options):
                self.bring_through_often([*append, *options])

    def test_signals_tell_how_to_go_on(self):
        repack = ["repack", "foreign.h5", "--chunk", 1, "-o", "out.h5"]
        reference = self.reference(repack)
        for number in STOPPED:
            _, errors = self.stop_in_the_middle(repack, number)
            self.assertRegex(errors, "'out.h5.partial' keeps what was written: the same command with --resume")
            self.assert_refused(repack, 1, ["out.h5.partial"], "--resume.*--force")
            for options, name in ((["--order", "shuffled"], "order"), (["--rows", "0:7"], "--rows"),
                                  (["--labels", "1"], "--labels"), (["--out-layout", "nchw"], "--out-layout"),
                                  (["--filter", "deflate:1"], "--filter"), (["--fields", "labels"], "--fields")):
                self.assert_refused([*repack, "--resume", *options], 2, ["out.h5.partial", name], "--force")
            self.assert_refused([*repack[:2], "--chunk", 2, "-o", "out.h5", "--resume"], 2, ["--chunk"], "--force")
            time_of_change = (self.dir / "foreign.h5").stat().st_mtime_ns
            os.utime(self.dir / "foreign.h5", ns=(0, 12345))
            self.assert_refused([*repack, "--resume"], 2, ["out.h5.partial", "source file"], "--force")
            os.utime(self.dir / "foreign.h5", ns=(0, time_of_change))
            output = self.h5pack_json(*repack, "--resume")[0]["outputs"][0]
            self.assertGreater(output["resumed_images"], 0)
            self.assert_only_output()
            assert_contents(self, self.dir / "out.h5", reference)
            (self.dir / "out.h5").unlink()

    def test_an_append_that_was_stopped_goes_on(self):
        append = [*self.make_append(), "--chunk", 1, "-o", "out.h5"]
        reference = self.reference(append)
        self.stop_in_the_middle(append, signal.SIGTERM)
        self.assert_refused([*append, "--resume", "--order", "shuffled"], 2, ["--order"], "--force")
        self.h5pack("repack", "foreign.h5", "-o", "other.h5", "--rows", "0:500")
        self.assert_refused(["append", "other.h5", *append[2:], "--resume"], 2, ["appended to", "other.h5"], "--force")
        self.assertGreater(self.h5pack_json(*append, "--resume")[0]["outputs"][0]["resumed_images"], 0)
        assert_contents(self, self.dir / "out.h5", reference)

    def test_a_filter_leaves_nothing_and_says_so(self):
        repack = ["repack", "foreign.h5", "--chunk", 1, "--filter", "deflate:9", "-o", "out.h5"]
        code, _, errors = self.stopped_as_it_begins([*repack, "--quiet"], signal.SIGINT)
        self.assertEqual(code, 130, errors)
        self.assertRegex(errors, "one with a filter cannot be resumed")
        self.assertEqual(list(self.dir.glob("out.h5*")), [])

        self.stopped_as_it_begins(repack, signal.SIGKILL)
        self.assertEqual([p.name for p in self.dir.glob("out.h5*")], ["out.h5.partial"])
        self.assert_refused(repack, 1, ["out.h5.partial"], "--resume.*--force")
        result = self.run_h5pack(*repack, "--resume")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, "a file with a filter cannot be resumed; 'out.h5' is written from the beginning")
        self.h5pack("verify", "out.h5")

    def test_encoded_images_say_how_to_go_on(self):
        make_photos_with_bad_names(self.dir, 20, 15, (160, 120))
        pack = ["folder", "photos", "--store", "encoded", "--on-error", "skip", "-o", "out.h5"]
        reference = self.reference(pack, SKIPPED)
        _, errors = self.stop_in_the_middle(pack)
        self.assertRegex(errors, "'out.h5.partial' keeps what was written: the same command with --resume goes on")
        self.assert_refused(pack, 1, ["out.h5.partial"], "--resume.*--force")
        self.assert_refused([*pack, "--resume", "--max-side", 20], 2, ["out.h5.partial", "--max-side"], "--force")
        report, = self.h5pack_json(*pack, "--resume", code=SKIPPED)
        self.assertGreater(report["outputs"][0]["resumed_images"], 0)
        assert_contents(self, self.dir / "out.h5", reference)
        self.assert_only_output()
        self.assertIn("complete already", self.run_h5pack(*pack, "--resume").stdout)
        self.assert_refused([*pack, "--resume", "--max-side", 20], 1, ["out.h5", "--max-side"], "--force")

    def test_encoded_images_do_not_replace_what_can_be_resumed(self):
        make_photos_with_bad_names(self.dir, 20, 15, (160, 120))
        pack = ["folder", "photos", "--on-error", "skip", "-o", "out.h5"]
        self.stop_in_the_middle([*pack, "--chunk", 1])
        self.assert_refused([*pack, "--store", "encoded", "--resume"], 2, ["out.h5.partial"], "--force")
        self.assertEqual(self.run_h5pack(*pack, "--store", "encoded", "--force").returncode, SKIPPED)
        self.h5pack("verify", "out.h5")

    def test_shards_of_encoded_images_go_on_with_those_that_are_missing(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 150, 40, 40)
        pack = ["folder", "photos", "--store", "encoded", "-o", "out.h5"]
        for shard in ("0/3", "1/3", "2/3"):
            self.h5pack(*pack, "--shard", shard)
        names = [f"out-0000{i}-of-00003.h5" for i in range(3)]
        reference = [contents(self.dir / name) for name in names]
        (self.dir / names[1]).rename(self.dir / f"{names[1]}.partial")  # as a kill leaves it
        for i, name in enumerate(names):
            output = self.h5pack_json(*pack, "--shard", f"{i}/3", "--resume")[0]["outputs"][0]
            self.assertEqual(output.get("complete_already", False), i != 1)
            assert_contents(self, self.dir / name, reference[i])
        self.assertEqual(sorted(path.name for path in self.dir.glob("out*")), names)

    def test_splits_go_on_with_the_one_that_is_missing(self):
        repack = ["repack", "foreign.h5", "--chunk", 2, "--split", "0.9:0.1", "-o", "parts"]
        self.h5pack(*repack)
        reference = contents(self.dir / "parts" / "train.h5")
        (self.dir / "parts" / "train.h5").unlink()
        outputs = self.h5pack_json(*repack, "--resume")[0]["outputs"]
        self.assertNotIn("complete_already", outputs[0])
        self.assertTrue(outputs[1]["complete_already"])
        assert_contents(self, self.dir / "parts" / "train.h5", reference)
        self.assertIn("test.h5: complete already, 150 images", self.h5pack(*repack, "--resume"))
        self.assert_refused([*repack, "--resume", "--seed", 3], 1, ["parts/train.h5", "--seed"], "--force")
