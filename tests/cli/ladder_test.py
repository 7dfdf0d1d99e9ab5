"""ladder: eleven ways of loading the same images, and what it writes of them."""

import json
import os
import signal
import subprocess
import time

import numpy as np
from PIL import Image

from support import CliTest

LADDER = os.environ["LADDER"]
CHUNKBENCH = os.environ["CHUNKBENCH"]
# 1.5 MiB in eight chunks, of which libhdf5's default cache holds five.
SMALL = ("--pictures", 400, "--height", 40, "--width", 32, "--batch", 16, "--step-ms", 0, "--chunk-bytes", "200KiB",
         "--window-bytes", "500KiB")


class LadderTest(CliTest):
    def setUp(self):
        super().setUp()
        (self.dir / "scratch").mkdir()

    def ladder(self, *arguments):
        result = subprocess.run([LADDER, *map(str, arguments), "--scratch", "scratch"], cwd=self.dir, text=True,
                                capture_output=True, timeout=300)
        self.assertEqual(list((self.dir / "scratch").iterdir()), [])
        return result

    def results(self, *arguments):
        result = self.ladder(*arguments, "--output", "ladder.json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads((self.dir / "ladder.json").read_text()), result.stdout

    def refused(self, code, texts, *arguments, drawn=False):
        """drawn: it has begun with the images, and said so."""
        result = self.ladder(*arguments)
        if drawn:
            result.stderr = result.stderr.partition("\n")[2]
        self.assert_one_line(result, code, *texts)

    def report(self):
        """What chunkbench draws of the results."""
        subprocess.run([CHUNKBENCH, "report", "ladder.json", "-o", "drawn.html", "--force"], cwd=self.dir, check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
        return (self.dir / "drawn.html").read_text()

    def test_every_variant(self):
        results, table = self.results(*SMALL, "--rounds", 2, "--page", "ladder.html")
        self.assertTrue(results["complete"])
        ladder = results["ladder"]
        self.assertEqual(len(ladder), 11)
        for variant in ladder:
            self.assertIn(variant["variant"], table)
            self.assertEqual(variant["images_per_second"]["n"], 2)
            self.assertGreater(variant["images_per_second"]["min"], 0)
            self.assertTrue(0 <= variant["stall"] <= 1)
        read = [variant["read_amplification"] for variant in ladder]
        self.assertIsNone(read[1], "memory is not read")
        for files in (read[0], read[2], read[3]):
            self.assertTrue(0 < files < 1, "JPEG files are smaller than pixels")
        # A chunk of fifty for many an image; then each chunk once, since the cache holds all.
        self.assertGreater(read[5], 5)
        for once in read[6:9]:
            self.assertAlmostEqual(once, 1, delta=0.1, msg="with the metadata")
        self.assertAlmostEqual(read[9], 0.5)
        self.assertAlmostEqual(read[10], read[3], delta=0.05, msg="the same bytes")
        page = (self.dir / "ladder.html").read_text()
        for variant in ladder:
            self.assertIn(variant["variant"], page)
        self.assertIn("<title>ladder: ", page)
        self.assertEqual(self.report(), page)

    def test_all_variants_read_from_the_slower_disk(self):
        results, _ = self.results(*SMALL, "--rounds", 1, "--limit-latency", "1ms", "--limit-queue", 1)
        self.assertEqual(results["options"]["limit"], {"profile": "custom", "bytes_per_second": None,
                                                       "request_seconds": 1e-3, "queue_depth": 1})
        self.assertIn("1 ms", self.report())
        rates = [variant["images_per_second"]["median"] for variant in results["ladder"]]
        # A request for each image.
        for one_by_one in (0, 2, 3):
            self.assertLessEqual(rates[one_by_one], 1000)
        # For most, since the sieve buffer rarely has the next one; for more than a tenth.
        self.assertLessEqual(rates[4], 2000)
        self.assertLessEqual(rates[5], 10000)

    def test_what_is_there_is_replaced_only_with_force(self):
        small = (*SMALL, "--rounds", 1, "--trial-seconds", 0.01)
        outputs = ("--output", "ladder.json", "--page", "ladder.html")
        for name in ("ladder.json", "ladder.html"):
            (self.dir / name).write_text("mine")
            self.refused(1, [name, "--force"], *small, *outputs)
            self.assertEqual((self.dir / name).read_text(), "mine")
            self.assertEqual(len(list(self.dir.iterdir())), 2, "nothing else was written")
            if name == "ladder.json":
                (self.dir / name).unlink()
        result = self.ladder(*small, *outputs, "--force")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(json.loads((self.dir / "ladder.json").read_text())["complete"])
        self.assertIn("<html", (self.dir / "ladder.html").read_text())
        for option in ("--output", "--page"):
            self.refused(1, ["absent"], *small, option, "absent/file")
        self.refused(2, ["same", "--page"], *small, "--output", "same", "--page", "./same")

    def test_pictures_of_a_folder(self):
        for i in range(30):
            path = self.dir / "photos" / f"class{i % 2}" / f"{i}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = np.random.default_rng(i).integers(0, 256, (24, 36, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(path, quality=90)
        results, _ = self.results("--folder", "photos", "--batch", 8, "--step-ms", 0, "--rounds", 1)
        self.assertEqual(results["dataset"]["shape"], [30, 24, 36, 3])
        self.assertEqual(results["dataset"]["name"], "photos")
        # One of another size; something else; nothing.
        Image.fromarray(np.zeros((24, 30, 3), np.uint8)).save(self.dir / "photos/class1/odd.jpg")
        self.refused(1, ["odd.jpg", "30x24", "36x24", "--folder"], "--folder", "photos", drawn=True)
        (self.dir / "photos/class1/odd.jpg").write_text("no image")
        self.refused(1, ["odd.jpg", "--folder"], "--folder", "photos", drawn=True)
        (self.dir / "empty").mkdir()
        self.refused(1, ["empty"], "--folder", "empty", drawn=True)
        self.refused(1, ["absent"], "--folder", "absent", drawn=True)

    def test_wrong_usage(self):
        self.refused(2, ["floppy", "hdd"], "--simulate-disk", "floppy")
        self.refused(2, ["--pictures"], "--pictures", 0)
        self.refused(2, ["--step-ms"], "--step-ms", -1)
        self.refused(2, ["--trial-seconds"], "--trial-seconds", 0)

    def test_interrupted_it_leaves_whole_results_and_no_files(self):
        process = subprocess.Popen([LADDER, *map(str, SMALL), "--rounds", "100000", "--scratch", "scratch", "--output",
                                    "ladder.json"], cwd=self.dir, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 120
            while not (self.dir / "ladder.json").exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=60), 130)
        finally:
            process.kill()
            process.wait()
        results = json.loads((self.dir / "ladder.json").read_text())
        self.assertFalse(results["complete"])
        self.assertEqual(len(results["ladder"]), 11)
        self.assertEqual(list((self.dir / "scratch").iterdir()), [])
