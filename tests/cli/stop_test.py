"""Signals that arrive while the program is in a call that does not return."""

import os
import signal
import subprocess
import time

import numpy as np

from support import H5PACK, STOPPED, TIMEOUT_SECONDS, CliTest

LIMIT_SECONDS = 5


class StopTest(CliTest):
    def setUp(self):
        super().setUp()
        self.write_h5("x.h5", images=np.zeros((4, 2, 2, 3), np.uint8))

    def start_hanging(self, *command):
        """Starts h5pack, and returns when it is inside a call of libhdf5 that never ends."""
        environment = {**os.environ, "LD_PRELOAD": os.environ["ENDLESS_HDF5"],
                       # The sanitizer's own library comes second then, which it allows when told.
                       "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
        process = subprocess.Popen([H5PACK, *command], cwd=self.dir, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=environment)
        self.addCleanup(process.kill)
        self.assertEqual(process.stderr.readline(), "libhdf5 does not return\n")
        return process

    def test_what_does_not_stop_is_ended(self):
        # Each with its own hint: only some commands have --resume.
        for command, numbers, way_out in (
                (["repack", "x.h5", "-o", "out.h5"], (signal.SIGTERM, signal.SIGINT),
                 "; an output that was begun is left as after a kill: the same command with --resume or --force "
                 "goes on"),
                (["export", "x.h5", "-o", "out.h5"], (signal.SIGTERM,),
                 "; the same command removes the unfinished folder, if there is one, and starts again"),
                (["verify", "x.h5"], (signal.SIGINT,), "; nothing was changed"),
                (["tune", "x.h5"], (signal.SIGTERM,), "; nothing was written")):
            for number in numbers:
                with self.subTest(command=command, signal=number):
                    process = self.start_hanging(*command)
                    process.send_signal(number)
                    sent = time.monotonic()
                    output, errors = process.communicate(timeout=TIMEOUT_SECONDS)
                    self.assertGreater(time.monotonic() - sent, LIMIT_SECONDS - 1, "it was given no time to stop")
                    self.assertEqual(process.returncode, STOPPED[number], errors)
                    self.assertEqual(output, "")
                    self.assertEqual(errors, "h5pack: error: it was told to stop and did not within 5 seconds, "
                                             f"so it was ended{way_out}\n")
                    self.assertFalse((self.dir / "out.h5").exists())

    def test_a_second_signal_does_not_wait(self):
        process = self.start_hanging("repack", "x.h5", "-o", "out.h5")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, STOPPED[signal.SIGTERM])
        self.assertEqual(errors, "")
