"""h5pack doctor: each bottleneck made on purpose, and what is wrong with a call said in one line."""

import json
import os
import signal
import time
import unittest

import numpy as np

from support import CliTest

STAGES = {"disk", "decode", "copy", "bus", "consumer"}
BOTTLENECKS = {"disk", "decode", "copy", "plan", "bus", "consumer", "buffers", "kernel"}


class DoctorTest(CliTest):
    def foreign(self, name="images.h5", shape=(400, 48, 48, 3), **options):
        """Images of four bits of noise a byte."""
        noise = np.random.default_rng(1).integers(0, 16, shape, np.uint8)
        self.write_h5(name, images={"data": noise, **options})
        return name

    def doctor(self, *arguments, seconds=0.1):
        return self.h5pack_json("doctor", *arguments, "--seconds", seconds, "--no-device")[0]

    def test_report_has_every_stage_alone_and_together(self):
        self.pack_photos("--chunk", 7, per_class=30)
        report = self.doctor("photos.h5", "--step-ms", 5, "--batch", 16)
        self.assertEqual(set(report["alone"]), STAGES)
        self.assertGreater(report["alone"]["disk"]["images_per_second"], 0)
        self.assertGreater(report["alone"]["copy"]["bytes_per_second"], 0)
        self.assertIsNone(report["alone"]["decode"], "no filter, no digests asked for")
        self.assertIsNone(report["alone"]["bus"])
        self.assertEqual(report["no_bus"], "--no-device")
        self.assertEqual(report["alone"]["consumer"]["images_per_second"], 3200)
        self.assertEqual(report["samples"], 60)
        self.assertGreater(report["loader_images_per_second"], 0)
        self.assertIn(report["bottleneck"], BOTTLENECKS)
        self.assertGreaterEqual(len(report["evidence"]), 1)
        for line in report["evidence"]:
            self.assertRegex(line, r"^[A-Z].*\.$")

    def test_a_slow_consumer_is_the_bound_and_needs_no_cure(self):
        report = self.doctor(self.foreign(), "--step-ms", 40, "--batch", 4)
        self.assertEqual(report["bottleneck"], "consumer")
        self.assertEqual(report["suggestions"], [])
        self.assertLess(report["stall_fraction"], 0.03)

    @unittest.skipIf(os.environ.get("CHUNKIO_SANITIZE"), "sanitizers slow down copying, and no decoder")
    def test_a_heavy_filter_is_the_bound_and_packing_anew_a_cure(self):
        # Batches that take long to decode: beside that a busy machine wakes the consumer soon.
        name = self.foreign(shape=(1600, 96, 96, 3), chunks=(16, 96, 96, 3), compression="gzip", compression_opts=1)
        report = self.doctor(name, "--step-ms", 0.01, "--batch", 800, seconds=1)
        self.assertEqual(report["bottleneck"], "decode")
        self.assertGreater(report["alone"]["decode"]["bytes_per_second"], 0)
        # Where the disk brings the images sooner than they are decoded, though they are larger then.
        disk, decode = (report["alone"][stage] for stage in ("disk", "decode"))
        if disk["bytes_per_second"] / report["sample_bytes"] > 1.1 * decode["images_per_second"]:
            self.assertIn("without a filter", " ".join(suggestion["text"] for suggestion in report["suggestions"]))
        rates = [suggestion["images_per_second"] for suggestion in report["suggestions"]]
        for before, after in zip(rates, rates[1:]):
            self.assertGreaterEqual(before * 1.02, after, "best first")
        for suggestion in report["suggestions"]:
            # Both are nearly all of the time: the step takes none of it.
            self.assertLessEqual(suggestion["stall_fraction"], report["stall_fraction"] + 0.01)
            self.assertRegex(suggestion["text"], r"^[A-Z].*\.$")

    def test_a_limited_disk_is_the_bound_and_echo_a_cure(self):
        # 2.8 MB of images from a disk of 10 MB/s, and a step that would take 20.
        report = self.doctor(self.foreign(), "--step-ms", 11, "--batch", 32, "--limit-bandwidth", "10MB/s",
                             "--memory-budget", "20MiB", "--window-bytes", "256KiB", seconds=1)
        self.assertEqual(report["bottleneck"], "disk")
        self.assertLess(report["alone"]["disk"]["bytes_per_second"], 15e6)
        self.assertEqual(report["disk_limit"]["bytes_per_second"], 10e6)
        self.assertGreater(report["stall_fraction"], 0.2)
        echo = [suggestion for suggestion in report["suggestions"] if (suggestion["option"] or "").startswith("echo = ")]
        self.assertEqual(len(echo), 1, report["suggestions"])
        self.assertLess(echo[0]["stall_fraction"], 0.1)

    def test_a_signal_ends_it_wherever_it_waits(self):
        name = self.foreign()
        # The first batch would come in a day.
        for arguments in ((), ("--json",)):
            with self.subTest(arguments=arguments):
                process = self.start(["doctor", name, "--step-ms", 1, "--seconds", 0.05, "--no-device", "--quiet",
                                      "--limit-bandwidth", "100", *arguments])
                time.sleep(2)
                self.assertIsNone(process.poll(), "it should have been waiting")
                process.send_signal(signal.SIGINT)
                code, out, errors = self.end(process)
                self.assertEqual(code, 130, errors)
                self.assertEqual(errors, "h5pack: the doctor was stopped\n")
                if arguments:
                    self.assertEqual(json.loads(out)["error"]["code"], "cancelled")
                else:
                    self.assertEqual(out, "")

    def test_reads_as_stream_would(self):
        name = self.foreign(chunks=(16, 48, 48, 3), compression="gzip", compression_opts=9)
        report = self.doctor(name, "--step-ms", 0.01, "--batch", 32, "--order", "random", "--verify", "off",
                             "--threads", 64)
        self.assertEqual(report["num_threads"], 64)
        # Not 64 times what one thread does.
        decode = report["alone"]["decode"]
        self.assertLessEqual(decode["images_per_second"],
                             1.01 * os.cpu_count() * decode["bytes_per_second"] / report["sample_bytes"])
        self.assert_refused(("doctor", name, "--step-ms", 1, "--fields", "nothing"), 1, ["nothing"], "it has")
        self.assert_refused(("doctor", name, "--step-ms", 1, "--order", "backwards"), 2, ["--order"], "random")

    def test_pictures_in_other_files_have_no_disk_to_measure(self):
        np.zeros((40, 8, 8, 3), np.uint8).tofile(self.dir / "raw.bin")
        self.write_h5("outside.h5", images={"shape": (40, 8, 8, 3), "dtype": np.uint8,
                                            "external": [("raw.bin", 0, 40 * 192)]})
        arguments = ("outside.h5", "--step-ms", 1, "--batch", 8, "--allow-external")
        report = self.doctor(*arguments)
        self.assertIsNone(report["alone"]["disk"])
        self.assertTrue(report["no_disk"])
        text = self.h5pack("doctor", *arguments, "--seconds", 0.05, "--no-device")
        self.assertIn("cannot be measured", text)

    def test_text_names_stages_bound_and_options_of_the_program(self):
        name = self.foreign(chunks=(16, 48, 48, 3), compression="gzip", compression_opts=9)
        text = self.h5pack("doctor", name, "--step-ms", "0.01", "--threads", 1, "--seconds", "0.1", "--no-device")
        for part in ("alone", "disk", "decode", "copy", "bus", "consumer", "together", "bottleneck", "evidence",
                     "images/s", "--no-device"):
            self.assertIn(part, text)
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()), text)

    def test_without_a_gpu_it_says_why_and_the_rest_of_the_report_is_whole(self):
        # As where there is no driver, no device, or no CUDA in the build; a GPU that there may be is hidden.
        no_gpu = {"CUDA_VISIBLE_DEVICES": ""}
        arguments = ("doctor", self.foreign(), "--step-ms", 1, "--batch", 8, "--seconds", 0.1)
        report = self.h5pack_json(*arguments, environment=no_gpu)[0]
        self.assertIsNone(report["alone"]["bus"])
        self.assertRegex(report["no_bus"], r"^(no GPU can be used: (no NVIDIA driver is there; install one|the driver goes up to "
                                           r"|the driver sees no device; .*CUDA_VISIBLE_DEVICES)"
                                           r"|this chunkio was built without CUDA: ).*on the CPU$")
        self.assertIn(report["bottleneck"], BOTTLENECKS - {"bus", "kernel"})
        text = self.h5pack(*arguments, environment=no_gpu)
        self.assertRegex(" ".join(text.split()), r" bus - (no GPU can be used|this chunkio was built without CUDA): .* consumer ")
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()), text)

    def test_what_is_wrong_is_said_in_one_line(self):
        name = self.foreign()
        self.write_h5("empty.h5", images=np.zeros((0, 8, 8, 3), np.uint8))
        (self.dir / "noise.h5").write_bytes(b"not HDF5" * 100)
        for code, part, way_out, arguments in (
                (2, "--step-ms", "--help", (name,)),
                (2, "--step-ms must be above 0", "h5pack stream", (name, "--step-ms", 0)),
                (2, "--step-ms", "from 0", (name, "--step-ms", "nan")),
                (2, "--seconds", "from 0.01 to 60", (name, "--step-ms", 1, "--seconds", 0)),
                (2, "--batch", "1 or more", (name, "--step-ms", 1, "--batch", 0)),
                (1, "absent.h5", "No such file", ("absent.h5", "--step-ms", 1)),
                (1, "noise.h5", "HDF5", ("noise.h5", "--step-ms", 1)),
                (1, "empty.h5", "nothing to read", ("empty.h5", "--step-ms", 1)),
                (1, "memory_budget", "raise", (name, "--step-ms", 1, "--memory-budget", "64KiB"))):
            with self.subTest(arguments=arguments):
                self.assert_refused(("doctor", *arguments), code, [part], way_out)
