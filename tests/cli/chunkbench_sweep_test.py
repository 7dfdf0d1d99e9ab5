"""chunkbench sweep: what it measures, what it leaves, and how it goes on after it was stopped.

CHUNKBENCH names the program, H5PACK that of h5pack. Figures are not judged: the sweeps here are tiny.
"""

import csv
import json
import os
import pathlib
import resource
import signal
import subprocess
import time
import unittest

import h5py
import numpy as np

from support import STOPPED, CliTest, tree

CHUNKBENCH = os.environ["CHUNKBENCH"]
TIMEOUT_SECONDS = 300
SAMPLE_BYTES = 12 * 12 * 3
# 1,500 images of 432 bytes: 648,000 bytes. One epoch a trial.
SMALL = ["sweep", "--synthetic", "1500x12x12x3", "--chunk-bytes", "16KiB,64KiB", "--cache-bytes", "64KiB,256KiB",
         "--batch-size", 32, "--trial-seconds", 0, "--trial-images", 1000, "--random-trial-images", 200]
PLAIN_COLUMNS = ("chunk_bytes", "chunk_samples", "cache_bytes", "order", "source", "threads", "status", "reason")
# Column and way in the JSON of a cell: (images_per_second_median, images_per_second, median), ...
CSV_OF_JSON = {
    **{name: (name,) for name in PLAIN_COLUMNS},
    **{f"{name}_{key}": (name, key) for name in ("images_per_second", "bytes_per_second")
       for key in ("median", "min", "max")},
    **{f"{name}_{key}": (name, key) for name in ("hit_rate", "read_amplification", "chunk_loads")
       for key in ("predicted", "measured")},
    **{f"{key}_seconds": ("stages", key) for key in ("plan", "read", "decode", "copy", "input_wait", "output_wait")}}
DONE = ("measured", "pruned")
IS_TSAN = "thread" in os.environ.get("CHUNKIO_SANITIZE", "")
# More than a sweep takes; ThreadSanitizer's shadow of what is newly mapped gets its pages, too.
MEMORY_LIMIT_MIB = 8192 if IS_TSAN else 400


def is_cold_possible(folder):
    """Whether pages of a file in this folder can be put out of the page cache."""
    path = pathlib.Path(folder) / "probe"
    path.write_bytes(os.urandom(1 << 20))
    with open(path, "rb") as file:
        os.fdatasync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_inblock
        file.read()
    path.unlink()
    return resource.getrusage(resource.RUSAGE_SELF).ru_inblock > before


class SweepTest(CliTest):
    def setUp(self):
        super().setUp()
        (self.dir / "scratch").mkdir()

    def start_sweep(self, arguments, **options):
        command = [CHUNKBENCH, *map(str, arguments), "--scratch", options.pop("scratch", "scratch")]
        return subprocess.Popen(command, cwd=self.dir, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                **options)

    def run_sweep(self, *arguments, code=0, **options):
        """Exit code must be `code`, and nothing may be left in the scratch folder. stdout and stderr."""
        process = self.start_sweep(arguments, **options)
        out, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, code, errors)
        self.assertNotIn("HDF5-DIAG", errors)
        self.assertEqual(list((self.dir / "scratch").iterdir()), [])
        return out, errors

    def refused(self, arguments, code, names, **options):
        """One clear line, nothing changed."""
        before = tree(self.dir)
        _, errors = self.run_sweep(*arguments, code=code, **options)
        lines = [line for line in errors.splitlines() if not line.startswith("chunkbench: note: ")]
        self.assertEqual(len(lines), 1, errors)
        for name in names:
            self.assertIn(name, lines[0])
        self.assertEqual(tree(self.dir), before)

    def results(self, name="r.json"):
        return json.loads((self.dir / name).read_text())

    def check_spread(self, spread, rounds):
        self.assertLessEqual(0, spread["min"])
        self.assertLessEqual(spread["min"], spread["median"])
        self.assertLessEqual(spread["median"], spread["max"])
        self.assertEqual(spread["n"], rounds)

    def check(self, results, complete=True):
        """The format, and what follows from what."""
        self.assertEqual((results["format"], results["version"]), ("chunkbench", 1))
        self.assertEqual(results["complete"], complete)
        self.assertLessEqual(results["time"]["seconds_measured"], results["time"]["seconds_total"])
        combinations = {(c["chunk_samples"], c["cache_bytes"], c["order"], c["source"], c["threads"])
                        for c in results["cells"]}
        self.assertEqual(len(combinations), len(results["cells"]))
        for cell in results["cells"]:
            rounds = cell["rounds"]
            if complete:
                self.assertIn(cell["status"], (*DONE, "failed", "skipped"))
            if cell["status"] == "measured":
                self.assertEqual(len(rounds), results["options"]["rounds"])
            self.assertEqual(bool(cell["reason"]), cell["status"] in ("pruned", "failed", "skipped"))
            if not rounds:
                self.assertIsNone(cell["images_per_second"])
                continue
            rates = sorted(r["images"] / r["seconds"] for r in rounds)
            self.check_spread(cell["images_per_second"], len(rounds))
            self.check_spread(cell["bytes_per_second"], len(rounds))
            self.assertAlmostEqual(cell["images_per_second"]["min"], rates[0], delta=1e-6 * rates[0])
            self.assertAlmostEqual(cell["images_per_second"]["max"], rates[-1], delta=1e-6 * rates[-1])
            self.assertEqual(cell["stages"] is None, cell["source"] == "h5dread")

    def check_counts(self, cell):
        """The model is exact, and what was counted is what was delivered."""
        for name in ("chunk_loads", "hit_rate", "read_amplification"):
            predicted, measured = cell[name]["predicted"], cell[name]["measured"]
            if predicted is None:
                self.assertEqual((name, cell["order"]), ("read_amplification", "random"))
                continue
            self.assertAlmostEqual(predicted, measured, places=9, msg=f"{name} of {cell}")

    def check_csv(self, results, path):
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), len(results["cells"]))
        for row, cell in zip(rows, results["cells"]):
            self.assertEqual(int(row.pop("rounds")), len(cell["rounds"]))
            self.assertEqual(set(row), set(CSV_OF_JSON))
            for column, keys in CSV_OF_JSON.items():
                value = cell
                for key in keys:
                    value = None if value is None else value[key]
                if isinstance(value, (int, float)):
                    self.assertEqual(float(row[column]), float(value), column)
                else:
                    self.assertEqual(row[column], value or "", column)

    def test_a_sweep_from_end_to_end(self):
        out, errors = self.run_sweep(*SMALL, "--warm", "--rounds", 3, "-o", "r.json", "--csv", "r.csv")
        self.assertIn("chunks of 16.0 KiB have 37 images, 15984 bytes", errors)
        self.assertIn("best in order chunk_shuffled", out)
        results = self.results()
        self.check(results)
        self.check_csv(results, self.dir / "r.csv")
        self.assertEqual(results["dataset"]["shape"], [1500, 12, 12, 3])
        self.assertEqual(results["dataset"]["bytes"], 1500 * SAMPLE_BYTES)
        self.assertFalse(results["options"]["cold"])
        # 2 chunks x 2 caches x 3 orders x (4 sources x 2 threads + h5dread).
        self.assertEqual(len(results["cells"]), 108)
        for cell in results["cells"]:
            skipped = cell["cache_bytes"] == 64 << 10 and cell["order"] != "chunk_shuffled" \
                and cell["source"] != "h5dread"
            self.assertEqual(cell["status"] == "skipped", skipped, cell)
            if skipped:
                continue
            self.assertIn(cell["status"], DONE, cell["reason"])
            self.check_counts(cell)
            # An epoch of a trial: whole chunks, or single rows.
            k = cell["chunk_samples"]
            least = 200 if cell["order"] == "random" else 1000
            self.assertTrue(least <= cell["rounds"][0]["images"] < least + (1 if cell["order"] == "random" else k))
        # A pruned cell leaves the best of its map in.
        for cell in results["cells"]:
            if cell["status"] == "pruned":
                best = max((c["images_per_second"]["median"] for c in results["cells"]
                            if c["status"] == "measured" and
                            all(c[key] == cell[key] for key in ("order", "source", "threads"))))
                self.assertLess(cell["images_per_second"]["max"], best)
        # Larger windows mix better; the labels of made-up images are sorted.
        for chunk in {p["chunk_bytes"] for p in results["shuffle"]}:
            small, large = [p for p in results["shuffle"] if p["chunk_bytes"] == chunk]
            self.assertLess(small["window_bytes"], large["window_bytes"])
            self.assertLess(small["label_entropy"], large["label_entropy"])
            self.assertGreater(small["same_chunk_pairs"], large["same_chunk_pairs"])
        self.assertEqual(sum(p["chosen"] for p in results["shuffle"]), 1)
        for ceiling in results["ceilings"]:
            self.check_spread(ceiling["bytes_per_second"], 3)
        # What is there is not replaced, and there is nothing left to do.
        self.refused([*SMALL, "--warm", "--rounds", 3, "-o", "r.json"], 1, ["r.json", "--force"])
        before = tree(self.dir)
        out, _ = self.run_sweep(*SMALL, "--warm", "--rounds", 3, "-o", "r.json", "--csv", "r.csv", "--continue")
        self.assertIn("nothing is left to do", out)
        self.assertEqual(tree(self.dir), before)

    def test_a_file_with_a_filter(self):
        pixels = np.random.default_rng(1).integers(0, 4, (300, 3, 10, 12), np.uint8)
        with h5py.File(self.dir / "foreign.h5", "w") as file:
            file["stuff/pixels"] = pixels
            file["stuff/classes"] = np.arange(300) % 3
        self.run_sweep("sweep", "foreign.h5", "--images", "stuff/pixels", "--chunk-bytes",
                       "8KiB", "--cache-bytes", "32KiB", "--filter", "deflate:4", "--rounds", 2, "--warm",
                       "--trial-seconds", 0, "--pictures", 250, "-o", "r.json")
        results = self.results()
        self.check(results)
        self.assertEqual(results["dataset"]["name"], "foreign.h5")
        self.assertEqual(results["dataset"]["shape"], [250, 10, 12, 3])
        for cell in results["cells"]:
            if cell["source"] in ("mapped", "scatter"):
                self.assertEqual((cell["status"], cell["reason"]),
                                 ("skipped", "this source reads no filtered chunks"))
            else:
                self.assertIn(cell["status"], DONE)
                self.assertAlmostEqual(cell["hit_rate"]["predicted"], cell["hit_rate"]["measured"])
                amplification = cell["read_amplification"]["measured"]
                if cell["source"] == "hdf5":
                    self.assertIsNone(amplification)
                elif cell["order"] == "sequential":
                    self.assertLess(amplification, 1)

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "no file system in memory")
    def test_what_is_not_cold_is_no_cold_figure(self):
        before = set(os.listdir("/dev/shm"))
        arguments = [*SMALL, "--rounds", 2, "--orders", "sequential", "--sources", "scatter", "--threads", 1]
        process = self.start_sweep([*arguments, "-o", "r.json"], scratch="/dev/shm")
        _, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("not cold", errors.splitlines()[-1])
        self.assertEqual(set(os.listdir("/dev/shm")) - before, set())
        results = self.results()
        self.check(results)
        for cell in results["cells"]:
            if cell["status"] != "skipped":
                self.assertEqual((cell["status"], cell["rounds"]), ("failed", []))
                self.assertRegex(cell["reason"], "not cold: .* page cache.*--scratch.*--warm")
                self.assertNotIn("/dev/shm", cell["reason"])
        self.assertEqual([c["name"] for c in results["ceilings"]], ["memory, copy of the same rows"])
        # The same, continued with what can be measured, is another sweep.
        self.refused([*arguments, "--warm", "-o", "r.json", "--continue"], 2, ["r.json", "--cold: there yes, now no"])

    def stop_sweep(self, arguments, number, rounds_before=0):
        """Stops it once there are more rounds in the results, and returns these."""
        process = self.start_sweep(arguments)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            try:
                if sum(len(cell["rounds"]) for cell in self.results()["cells"]) > rounds_before:
                    break
            except FileNotFoundError:
                pass
            time.sleep(0.005)
        process.send_signal(number)
        _, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, STOPPED[number], errors)
        self.assertRegex(errors.splitlines()[-1], "stopped by SIG.*'r.json' keeps .*--continue")
        self.assertEqual(list((self.dir / "scratch").iterdir()), [])
        self.assertEqual([p.name for p in self.dir.glob("r.*")], ["r.json"])
        results = self.results()
        self.check(results, complete=False)
        return results

    def test_a_stopped_sweep_goes_on(self):
        # Trials long enough that there is a middle.
        arguments = [*SMALL, "--warm", "--rounds", 4, "--sources", "scatter,h5dread", "--orders", "chunk_shuffled",
                     "--threads", 1, "-o", "r.json"]
        at = arguments.index("--trial-seconds")
        arguments[at + 1] = 0.3
        before = self.stop_sweep(arguments, signal.SIGTERM)
        # Other options are another sweep.
        self.refused([*arguments, "--filter", "deflate:1", "--continue"], 2, ["--filter"])
        again = self.stop_sweep([*arguments, "--continue"], signal.SIGINT,
                                sum(len(cell["rounds"]) for cell in before["cells"]))
        rounds = {cell_key(c): c["rounds"] for c in again["cells"]}
        for cell in before["cells"]:
            self.assertEqual(rounds[cell_key(cell)][:len(cell["rounds"])], cell["rounds"])
        self.assertGreaterEqual(again["time"]["seconds_total"], before["time"]["seconds_total"])
        self.run_sweep(*arguments, "--continue")
        results = self.results()
        self.check(results)
        rounds = {cell_key(c): c["rounds"] for c in results["cells"]}
        for cell in again["cells"]:
            self.assertEqual(rounds[cell_key(cell)][:len(cell["rounds"])], cell["rounds"])
        self.assertEqual(results["created"], before["created"])

    def test_what_failed_is_tried_again(self):
        arguments = [*SMALL, "--warm", "--rounds", 2, "--sources", "scatter,h5dread", "--orders", "sequential",
                     "--threads", 1, "-o", "r.json"]
        self.run_sweep(*arguments)
        before = self.results()
        self.check(before)
        cell = next(c for c in before["cells"] if c["source"] == "h5dread")
        cell.update(status="failed", reason="a disk that was away", rounds=[], images_per_second=None,
                    bytes_per_second=None)
        (self.dir / "r.json").write_text(json.dumps(before))
        self.run_sweep(*arguments, "--continue")
        results = self.results()
        self.check(results)
        for old, new in zip(before["cells"], results["cells"]):
            self.assertEqual(cell_key(old), cell_key(new))
            if cell_key(new) == cell_key(cell):
                self.assertIn(new["status"], DONE, new["reason"])
            else:
                self.assertEqual(new, old)
        # Ceilings go on, too.
        for old, new in zip(before["ceilings"], results["ceilings"]):
            self.assertEqual(new["rounds"][:len(old["rounds"])], old["rounds"])
            self.assertEqual(len(new["rounds"]), len(old["rounds"]) + 2)
            self.check_spread(new["bytes_per_second"], len(new["rounds"]))

    def test_a_file_that_cannot_be_read_fails_its_cells_only(self):
        process = self.start_sweep([*SMALL, "--warm", "--rounds", 1, "--sources", "scatter,hdf5,h5dread", "--orders",
                                    "sequential", "--threads", 1, "-o", "r.json"])
        while process.poll() is None and not (self.dir / "r.json").exists():
            pass
        # Before any source is checked, or soon afterwards.
        process.send_signal(signal.SIGSTOP)
        large = max((self.dir / "scratch").glob("*/*.h5"), key=lambda path: int(path.stem))
        large.unlink()
        process.send_signal(signal.SIGCONT)
        _, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 3, errors)
        self.assertIn("cells failed; the first: ", errors.splitlines()[-1])
        results = self.results()
        self.check(results)
        for cell in results["cells"]:
            if cell["status"] != "skipped":
                self.assertEqual(cell["status"] == "failed", cell["chunk_samples"] == int(large.stem), cell)
        self.assertEqual([c["name"] for c in results["ceilings"]], ["memory, copy of the same rows"])
        self.assertTrue(any(note.startswith("no ceiling 'storage, large reads': ")
                            for note in results["options"]["notes"]))

    def test_outputs_that_are_the_file_or_each_other(self):
        with h5py.File(self.dir / "train.h5", "w") as file:
            file["images"] = np.zeros((10, 5, 6, 3), np.uint8)
        os.symlink("train.h5", self.dir / "link.h5")
        os.link(self.dir / "train.h5", self.dir / "twin.h5")
        (self.dir / "r.csv").write_text("old")
        for outputs, names in ((["-o", "train.h5"], ["--output", "train.h5", "FILE"]),
                               (["-o", "link.h5"], ["--output", "link.h5", "FILE"]),
                               (["-o", "./scratch/../twin.h5"], ["--output", "twin.h5", "FILE"]),
                               (["-o", "r.json", "--csv", "train.h5"], ["--csv", "train.h5", "FILE"]),
                               (["-o", "r.csv", "--csv", self.dir / "r.csv"], ["--csv", "--output"]),
                               (["-o", "new", "--csv", "scratch/../new"], ["--csv", "new", "--output"])):
            for options in (["--force"], ["--continue"], []):
                with self.subTest(outputs, options=options):
                    self.refused(["sweep", "train.h5", *outputs, *options], 2, names)

    def test_a_stop_while_files_are_written(self):
        """Also where the sweep is a process of its own, in a control group; what is there outlives it."""
        for options in ([], ["--memory-limit", "2GiB"], ["--force"]):
            with self.subTest(options):
                if options == ["--force"]:
                    (self.dir / "r.json").write_text("old")
                before = tree(self.dir)
                process = self.start_sweep(["sweep", "--synthetic", "1000000x32x32x3", "--chunk-bytes", "1MiB",
                                            "-o", "r.json", *options])
                while process.poll() is None and not list((self.dir / "scratch").glob("**/*.h5*")):
                    time.sleep(0.005)
                process.send_signal(signal.SIGTERM)
                _, errors = process.communicate(timeout=TIMEOUT_SECONDS)
                self.assertEqual(process.returncode, STOPPED[signal.SIGTERM], errors)
                self.assertIn("stopped by SIGTERM; nothing was measured yet", errors)
                self.assertEqual("'r.json' is as it was" in errors, options == ["--force"])
                self.assertEqual(tree(self.dir), before)

    def test_results_that_cannot_be_continued(self):
        """What is no result at all is told by results_test.cpp."""
        arguments = [*SMALL, "--warm", "--rounds", 1, "--sources", "scatter", "--threads", 1, "-o", "r.json",
                     "--continue"]
        self.run_sweep(*arguments)  # nothing to continue: from the start
        whole = (self.dir / "r.json").read_text()
        (self.dir / "r.json").write_text(whole[:len(whole) // 2])
        self.refused(arguments, 1, ["r.json", "cut off"])

    def test_a_disk_that_fills(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        self.refused([*SMALL, "--warm", "-o", "r.json"], 1, ["scratch", ".h5"],
                     preexec_fn=small_files)
        # Seen before anything is written.
        self.refused(["sweep", "--synthetic", "100000000x1000x1000x3", "-o", "r.json"], 1,
                     ["scratch", "free", "--scratch", "--chunk-bytes"])

    def test_bad_input(self):
        with h5py.File(self.dir / "none.h5", "w") as file:
            file["numbers"] = np.arange(10)
        (self.dir / "text.h5").write_text("no HDF5")
        start = ["sweep", "-o", "r.json"]
        made = [*start, "--synthetic", "10x4x4x3"]
        for arguments, code, names in (
                (start, 2, ["FILE", "--synthetic"]),
                ([*made, "none.h5"], 2, ["FILE", "--synthetic"]),
                ([*start, "none.h5"], 1, ["none.h5"]),
                ([*start, "text.h5"], 1, ["text.h5"]),
                ([*start, "absent.h5"], 1, ["absent.h5"]),
                ([*start, "--synthetic", "10x4x4"], 2, ["--synthetic", "NxHxWxC"]),
                ([*start, "--synthetic", "0x4x4x3"], 2, ["--synthetic"]),
                ([*start, "--synthetic", "10x100000x100000x3"], 2, ["--synthetic", "1 GiB"]),
                ([*made, "--pictures", "5"], 2, ["--pictures"]),
                ([*made, "--cache-bytes", "0"], 2, ["--cache-bytes", "at least 1 B"]),
                ([*made, "--cache-bytes", "1MiB,1MiB"], 2, ["--cache-bytes", "twice"]),
                ([*made, "--chunk-bytes", "1MiB,"], 2, ["--chunk-bytes"]),
                ([*made, "--orders", "any"], 2, ["--orders", "chunk_shuffled"]),
                ([*made, "--sources", "mapped,tape"], 2, ["--sources", "tape"]),
                ([*made, "--threads", "0"], 2, ["--threads"]),
                ([*made, "--threads", "1,x"], 2, ["--threads"]),
                ([*made, "--rounds", "0"], 2, ["--rounds"]),
                ([*made, "--trial-seconds", "nan"], 2, ["--trial-seconds"]),
                ([*made, "--throttle-device", "0"], 2, ["--throttle-device"]),
                ([*made, "--cold", "--warm"], 2, ["--cold", "--warm"]),
                ([*made, "--force", "--continue"], 2, ["--force", "--continue"]),
                (["sweep", "--synthetic", "10x4x4x3"], 2, ["--output"]),
                (["sweep", "--synthetic", "10x4x4x3", "-o", "no/r.json"], 1, ["no"]),
                (["sweep", "--synthetic", "10x4x4x3", "-o", "scratch"], 1, ["scratch", "folder"]),
                ([*made, "--csv", "no/r.csv"], 1, ["no"]),
                (["swoop"], 2, ["--help"])):
            with self.subTest(arguments):
                self.refused(arguments, code, names)
        self.refused(made, 1, ["--scratch"], scratch="none")

    def test_a_slower_disk_is_slower_for_every_source(self):
        rate = 4_000_000
        arguments = ["64KiB" if a == "64KiB,256KiB" else a for a in SMALL]
        arguments += ["--rounds", 1, "--orders", "chunk_shuffled", "--threads", 2, "-o", "r.json"]
        self.run_sweep(*arguments, "--limit-bandwidth", "4MB/s", "--limit-latency", "1ms")
        results = self.results()
        self.check(results)
        self.assertEqual(results["options"]["limit"], {"profile": "custom", "bytes_per_second": rate,
                                                       "request_seconds": 0.001, "queue_depth": None})
        self.assertFalse(results["options"]["cold"])
        for cell in results["cells"]:
            self.assertIn(cell["status"], DONE, cell["reason"])
            self.assertLess(cell["bytes_per_second"]["max"], rate)
            self.check_counts(cell)
        for ceiling in results["ceilings"]:
            if ceiling["name"].startswith("storage"):
                self.assertLess(ceiling["bytes_per_second"]["max"], rate)
        # Another disk is another sweep.
        self.refused([*arguments, "--simulate-disk", "hdd", "--continue"], 2, ["r.json", "limit of the disk"])

    def test_limits_of_device_and_memory_are_kept_or_said_not_to_be(self):
        """Both at once, or a note each; never refused."""
        if not is_cold_possible(self.dir):
            self.skipTest("the file system of the scratch folder cannot be made cold")
        rate = 500_000  # A trial takes a second: on a busy machine, some of it may pass before its clock starts.
        _, errors = self.run_sweep(*SMALL, "--cold", "--rounds", 1, "--orders", "sequential", "--sources",
                                   "scatter,h5dread", "--threads", 1, "--throttle-device", "0.5MB/s", "--memory-limit",
                                   f"{MEMORY_LIMIT_MIB}MiB", "-o", "r.json")
        results = self.results()
        self.check(results)
        self.assertTrue(results["options"]["cold"])
        throttled = results["options"]["throttled_device"]
        if throttled is None:
            self.assertEqual(results["options"]["limit"]["bytes_per_second"], rate)
            self.assertIn("--throttle-device cannot be done", errors)
        else:
            self.assertIn(str(rate), throttled)
            self.assertIsNone(results["options"]["limit"])
        said = any("--memory-limit" in note for note in results["options"]["notes"])
        self.assertEqual(results["options"]["memory_limit"], None if said else MEMORY_LIMIT_MIB << 20)
        self.assertEqual("no --memory-limit: " in errors, said)
        for cell in results["cells"]:
            if cell["status"] != "skipped":
                self.assertIn(cell["status"], DONE, cell["reason"])
                # The kernel lets through what it saved up before.
                self.assertLess(cell["bytes_per_second"]["max"], 3 * rate)

    @unittest.skipIf(IS_TSAN, "its shadow alone takes more than the limit")
    def test_a_trial_may_read_more_than_the_memory_limit(self):
        if not is_cold_possible(self.dir):
            self.skipTest("the file system of the scratch folder cannot be made cold")
        # 120 MB a trial.
        _, errors = self.run_sweep("sweep", "--synthetic", "45000x32x32x3", "--chunk-bytes", "256KiB",
                                   "--cache-bytes", "1MiB", "--orders", "sequential", "--sources", "scatter",
                                   "--threads", 1, "--cold", "--rounds", 1, "--trial-seconds", 0, "--trial-images",
                                   40000, "--memory-limit", "96MiB", "-o", "r.json")
        results = self.results()
        self.check(results)
        if "no --memory-limit: " in errors:
            self.skipTest(errors)
        self.assertEqual([c["status"] for c in results["cells"]], ["measured"])

    def test_a_kill_for_memory_says_what_helps(self):
        process = self.start_sweep([*SMALL, "--warm", "--memory-limit", "2MiB", "-o", "r.json"])
        _, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        if process.returncode == 0 or "no --memory-limit: " in errors:
            self.skipTest("no memory limit here, or there is swap")
        self.assertEqual(process.returncode, 1, errors)
        self.assertRegex(errors.splitlines()[-1], "killed.*--memory-limit of 2.0 MiB; raise it.*--force")
        self.assertNotIn("--continue", errors)
        self.assertEqual(list((self.dir / "scratch").iterdir()), [])


def cell_key(cell):
    return tuple(cell[key] for key in ("chunk_samples", "cache_bytes", "order", "source", "threads"))
