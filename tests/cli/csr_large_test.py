"""h5pack csr on what does not fit its memory."""

import json
import os
import unittest

import numpy as np

from support import CliTest


class LargeCsrTest(CliTest):
    def test_memory_is_bounded(self):
        """Four million lines of a CSV with 32 MiB."""
        random = np.random.default_rng(0)
        with open(self.dir / "r.csv", "w") as file:
            file.write("user,item,rating\n")
            for _ in range(40):
                users, items = random.integers(0, 50_000, 100_000), random.zipf(1.2, 100_000) % 20_000
                file.write("".join(f"{user},{item},{item % 5}\n" for user, item in zip(users, items)))
        process = self.start(["csr", "r.csv", "-o", "out.h5ad", "--memory-budget", "32MiB", "--json", "--quiet"])
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stderr.close()
        process.stdout.close()
        self.assertEqual(process.returncode, 0)
        report = json.loads(out)
        self.assertEqual(report["entries"] + report["duplicates"], 4_000_000)
        self.assertGreater(report["buckets"], 3)
        # The program itself has some 30 MiB of libraries.
        if not os.environ.get("CHUNKIO_SANITIZE"):
            self.assertLess(usage.ru_maxrss, 90 << 10, "KiB")


if __name__ == "__main__":
    unittest.main()
