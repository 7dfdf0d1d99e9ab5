"""h5pack stream with several ranks: what four processes deliver adds up to the dataset."""

import json
import os
import re
import subprocess

import numpy as np

from support import CliTest, H5PACK

SAMPLES = 1003  # divided by no number of ranks here


def digest(reports):
    """Of all that was delivered, mod 2^64."""
    return sum(int(report["pixel_digest"], 16) for report in reports) % 2**64


class RanksTest(CliTest):
    def setUp(self):
        super().setUp()
        # All images differ, so that digests tell which were delivered.
        pixels = np.random.default_rng(4).integers(0, 256, (SAMPLES, 8, 8, 3), dtype=np.uint8)
        self.write_h5("data.h5", images={"data": pixels, "chunks": (10, 8, 8, 3)})

    def of_rank(self, rank, world_size, *options):
        """The reports of one rank."""
        return self.h5pack_json("stream", "data.h5", "--rank", rank, "--world-size", world_size, *options, "--digest")

    def test_exact_adds_up_over_four_processes(self):
        alone, = self.h5pack_json("stream", "data.h5", "--digest")
        run = ["stream", "data.h5", "--ranks-from-env", "--digest", "--uneven", "exact", "--epochs", 3, "--batch", 16]
        ranks = [self.h5pack_json(*run, environment={"RANK": str(rank), "WORLD_SIZE": "4"})
                 for rank in range(4)]
        for epoch, reports in enumerate(zip(*ranks, strict=True)):
            self.assertEqual([(r["epoch"], r["rank"], r["world_size"]) for r in reports],
                             [(epoch, rank, 4) for rank in range(4)])
            self.assertEqual(sum(r["images"] for r in reports), SAMPLES)
            self.assertEqual(digest(reports), int(alone["pixel_digest"], 16))
            self.assertEqual(len({r["pixel_digest"] for r in reports}), 4, "ranks deliver different images")

    def test_a_run_continues_with_another_world_size(self):
        """8 lanes, read by 4, then 2 processes, changed inside of an epoch."""
        first = [self.of_rank(rank, 4, "--lanes", 8, "--batch", 8, "--steps", 5, "--state-out", f"state.{rank}")
                 for rank in range(4)]
        self.assertEqual(len({(self.dir / f"state.{rank}").read_text() for rank in range(4)}), 1)
        rest = [self.of_rank(rank, 2, "--state-in", "state.0") for rank in range(2)]
        whole = [self.of_rank(rank, 2, "--lanes", 8, "--batch", 16) for rank in range(2)]
        self.assertEqual(digest(sum(first + rest, [])), digest(sum(whole, [])))

    def test_ranks_come_from_the_environment(self):
        command = ["stream", "data.h5", "--ranks-from-env"]
        report, = self.h5pack_json(*command, environment={"SLURM_PROCID": "2", "SLURM_NTASKS": "4"})
        self.assertEqual((report["rank"], report["world_size"], report["images"]), (2, 4, 251))
        self.assert_fails(command, "RANK.*SLURM_PROCID", code=2)
        self.assert_fails(command, "RANK.*WORLD_SIZE", code=2, environment={"RANK": "1"})

    def test_reports_of_several_processes_do_not_mix(self):
        """Four processes on one pipe: every line is whole, and so is every epoch of the text."""
        def run(*options):
            reader, writer = os.pipe()
            processes = [subprocess.Popen([H5PACK, "stream", "data.h5", "--rank", str(rank), "--world-size",
                                           "4", "--epochs", "200", "--quiet", *options], cwd=self.dir,
                                          stdout=writer) for rank in range(4)]
            os.close(writer)
            with open(reader) as pipe:
                text = pipe.read()
            self.assertEqual([process.wait(timeout=120) for process in processes], [0] * 4)
            return text

        reports = [json.loads(line) for line in run("--json").splitlines()]
        self.assertEqual(sorted((r["rank"], r["epoch"]) for r in reports),
                         [(rank, epoch) for rank in range(4) for epoch in range(200)])
        blocks = re.findall(r"(?m)^epoch +\d+ +rank (\d): .*\n  stall .*\n  chunk loads .*\n  workers .*\n.*\n.*\n",
                            run())
        self.assertEqual(sorted(blocks), sorted("0123" * 200))
