"""h5pack stream from a server of which every twentieth request fails, and from one that is away for long. Prints what
was met."""

import json
import random
import unittest

import h5py
import numpy as np

from remote_files import RemoteTest

EPOCHS = 8
BUDGET = 128 << 20


class RemoteFaultsTest(RemoteTest):
    def setUp(self):
        super().setUp()
        self.write_h5("pixels.h5", images={"shape": (2048, 160, 160, 3), "dtype": np.uint8}, labels=np.arange(2048) % 7)
        noise = np.random.default_rng(0)
        with h5py.File(self.dir / "pixels.h5", "r+") as file:
            for first in range(0, 2048, 64):  # in parts: the memory of h5pack is that of this program at first
                file["images"][first:first + 64] = noise.integers(0, 256, (64, 160, 160, 3), np.uint8)
        self.h5pack("repack", "pixels.h5", "-o", "train.h5")
        self.expected, _ = self.stream("train.h5")

    def stream(self, path):
        """Digests of each epoch, and the peak of memory in bytes."""
        out, peak = self.h5pack_peak("stream", path, "--digest", "--epochs", EPOCHS, "--batch", 64, "--window-bytes",
                                     "16MiB", "--memory-budget", BUDGET, "--json", "--quiet")
        epochs = [json.loads(line) for line in out.splitlines()]
        return [(e["images"], e["order_digest"], e["pixel_digest"], e["field_digests"]) for e in epochs], peak

    def test_a_twentieth_of_the_requests_fails(self):
        for fault in (408, 429, 500, 503, {"status": 503, "Retry-After": 1}, "reset", "cut", "shifted", "wrong", 0.5, "hang"):
            with self.subTest(fault):
                chosen, failed = random.Random(5), []

                def fail(number, fault=fault, chosen=chosen, failed=failed):
                    # What describes the file has no digest.
                    if number < 3 or chosen.random() >= 0.05:
                        return None
                    failed.append(number)
                    return dict(fault) if isinstance(fault, dict) else fault

                server = self.serve(fail)
                digests, peak = self.stream(f"{server.url}/train.h5")
                self.assertEqual(digests, self.expected)
                self.assert_memory(peak, BUDGET)
                self.assertGreater(len(failed), 50)
                print(f"{fault}: {len(failed)} of {len(server.requests)} requests, {EPOCHS} epochs as from the disk, "
                      f"{peak >> 20} MiB", flush=True)
                server.close()

    def test_a_server_that_is_away_for_long(self):
        self.assert_waits_for_server("train.h5", 20, [pixel_digest for _, _, pixel_digest, _ in self.expected[:3]],
                                     "--batch", 64, "--window-bytes", "16MiB")


if __name__ == "__main__":
    unittest.main()
