"""h5pack stream with several ranks: what four real processes deliver adds up to the dataset."""

import json
import os
import re
import shutil
import subprocess
import unittest

import h5py
import numpy as np

from support import CliTest, H5PACK

# As root in a container on one machine: no remote shell, no network, more processes than cores.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader", "--mca", "plm",
          "isolated", "--mca", "oob", "tcp", "--mca", "oob_tcp_if_include", "lo"]
# What launchers set; a test itself may run under one of them.
VARIABLES = ("RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
             "SLURM_PROCID", "SLURM_NTASKS")
SAMPLES = 1003  # divided by no number of ranks here


def digest(reports):
    """Of all that was delivered, mod 2^64."""
    return sum(int(report["pixel_digest"], 16) for report in reports) % 2**64


class RanksTest(CliTest):
    def setUp(self):
        super().setUp()
        # All images differ, so that digests tell which were delivered.
        pixels = np.random.default_rng(4).integers(0, 256, (SAMPLES, 8, 8, 3), dtype=np.uint8)
        with h5py.File(self.dir / "data.h5", "w") as file:
            file.create_dataset("images", data=pixels, chunks=(10, 8, 8, 3))
            file["labels"] = np.arange(SAMPLES) % 10

    def of_rank(self, rank, world_size, *options):
        """The reports of one rank."""
        return self.h5pack_json("stream", "data.h5", "--rank", rank, "--world-size", world_size, *options,
                                "--digest")

    def one_process(self):
        report, = self.h5pack_json("stream", "data.h5", "--digest")
        self.assertEqual(report["images"], SAMPLES)
        return report

    def run_mpi(self, world_size, *options):
        """The reports of all ranks, started by mpirun at the same time."""
        if not shutil.which("mpirun"):
            self.skipTest("mpirun is not installed (Debian: openmpi-bin)")
        # A file for each: mpirun forwards output in pieces, so long lines of several processes mix.
        each = ["sh", "-c", 'exec "$@" >"rank-$OMPI_COMM_WORLD_RANK.json"', "sh"]
        command = [*MPIRUN, "-n", str(world_size), *each, H5PACK, "stream", "data.h5", "--ranks-from-env",
                   *map(str, options), "--digest", "--json", "--quiet"]
        variables = {k: v for k, v in os.environ.items() if k not in VARIABLES}
        variables["TMPDIR"] = str(self.dir)
        result = subprocess.run(command, cwd=self.dir, env=variables, timeout=120, text=True,
                                capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        reports = []
        for rank in range(world_size):
            path = self.dir / f"rank-{rank}.json"
            reports += [json.loads(line) for line in path.read_text().splitlines()]
            path.unlink()
        for report in reports:
            self.assertEqual(report["world_size"], world_size)
        return sorted(reports, key=lambda report: (report["epoch"], report["rank"]))

    def test_exact_adds_up_over_four_processes(self):
        alone = self.one_process()
        reports = self.run_mpi(4, "--uneven", "exact", "--epochs", 3, "--batch", 16)
        self.assertEqual([(r["epoch"], r["rank"]) for r in reports],
                         [(epoch, rank) for epoch in range(3) for rank in range(4)])
        for epoch in range(3):
            of_epoch = reports[4 * epoch:4 * epoch + 4]
            self.assertEqual(sum(r["images"] for r in of_epoch), SAMPLES)
            self.assertEqual(digest(of_epoch), int(alone["pixel_digest"], 16))
            self.assertEqual(len({r["pixel_digest"] for r in of_epoch}), 4, "ranks deliver different images")

    def test_pad_and_drop_have_equal_batches(self):
        alone = self.one_process()
        for uneven, images in (("pad", 251), ("drop", 250)):
            for options in ([], ["--drop-last"]):
                with self.subTest(uneven=uneven, options=options):
                    reports = self.run_mpi(4, "--uneven", uneven, "--batch", 16, *options)
                    expected = images // 16 * 16 if options else images
                    self.assertEqual([(r["images"], r["batches"]) for r in reports],
                                     [(expected, -(-expected // 16))] * 4)
        # One lane is a sample short of 251 and delivers its first once more. So with the digest of that
        # sample, which --steps 1 with batches of one shows, the sum is that of the whole dataset.
        padded = self.run_mpi(4, "--uneven", "pad")
        firsts = [self.of_rank(rank, 4, "--batch", 1, "--steps", 1) for rank in range(4)]
        surplus = (digest(padded) - int(alone["pixel_digest"], 16)) % 2**64
        self.assertIn(surplus, [digest(first) for first in firsts])

    def test_lanes_make_global_batches_independent_of_world_size(self):
        """After each number of steps the ranks together have delivered the same samples."""
        for steps in (1, 2, 7, 31, 1000):
            sums = set()
            shares = []
            for world_size in (1, 2, 4, 8):
                reports = [report for rank in range(world_size)
                           for report in self.of_rank(rank, world_size, "--lanes", 8, "--batch",
                                                      32 // world_size, "--steps", steps)]
                sums.add((digest(reports), sum(r["images"] for r in reports)))
                shares.append(reports)
            self.assertEqual(len(sums), 1, f"{steps} steps")
            # And each rank has its own part of it: two halves are four quarters are eight eighths.
            for few, many in zip(shares, shares[1:]):
                for rank, report in enumerate(few):
                    self.assertEqual(int(report["pixel_digest"], 16), digest(many[2 * rank:2 * rank + 2]))

    def test_a_run_continues_with_other_world_sizes(self):
        """8 lanes, read by 4, then 2, then 1 and 8 processes, changed inside of an epoch."""
        def run(world_size, state_in, state_out, *options):
            reports = []
            for rank in range(world_size):
                from_where = (["--state-in", state_in] if state_in
                              else ["--lanes", 8, "--batch", 32 // world_size])
                reports += self.of_rank(rank, world_size, *from_where, "--state-out", f"{state_out}.{rank}",
                                        "--epochs", 2, *options)
            states = {(self.dir / f"{state_out}.{rank}").read_text() for rank in range(world_size)}
            self.assertEqual(len(states), 1, "all ranks stand at the same place")
            return reports

        parts = [run(4, None, "a", "--steps", 5), run(2, "a.0", "b", "--steps", 9),
                 run(1, "b.0", "c", "--steps", 20), run(8, "c.0", "d")]
        every = [report for rank in range(2)
                 for report in self.of_rank(rank, 2, "--lanes", 8, "--batch", 16, "--epochs", 2)]
        self.assertEqual(digest(report for part in parts for report in part), digest(every))
        self.assertEqual(sum(r["images"] for part in parts for r in part), sum(r["images"] for r in every))
        self.assert_refused(["stream", "data.h5", "--state-in", "a.0", "--world-size", 3, "--epochs", 2], 2,
                            ["a.0", "world_size 3"], r"use one")

    def test_exact_continues_where_some_ranks_have_one_batch_less(self):
        """Of 1003 samples three ranks have 251 and one 250: with batches of 250 it has one batch only."""
        every = self.one_process()
        common = ["--uneven", "exact", "--epochs", 2]
        first, rest = [], []
        for rank in range(4):
            first += self.of_rank(rank, 4, *common, "--batch", 250, "--steps", 1, "--state-out", f"s.{rank}")
        states = {(self.dir / f"s.{rank}").read_text() for rank in range(4)}
        self.assertEqual(len(states), 1)
        for rank in range(4):
            rest += self.of_rank(rank, 4, *common, "--state-in", "s.0")
        self.assertEqual(sorted(r["images"] for r in rest if r["epoch"] == 0), [0, 1, 1, 1])
        self.assertEqual((digest(first) + digest(rest)) % 2**64, 2 * int(every["pixel_digest"], 16) % 2**64)

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

    def test_ranks_read_only_their_part(self):
        reports = [self.of_rank(rank, 4)[0] for rank in range(4)]
        loads = [report["chunk_loads"] for report in reports]
        # 101 chunks; each of the three boundaries may cut one, and a padding sample costs one more.
        self.assertLessEqual(sum(loads), 101 + 3 + 1)
        self.assertLess(max(loads), 30)

    def test_more_ranks_than_samples(self):
        self.assert_refused(["stream", "data.h5", "--world-size", SAMPLES + 1], 2, [str(SAMPLES)], r"lanes")

    def test_lanes_that_do_not_divide(self):
        for options, names in ((["--world-size", 2, "--lanes", 3], ["lanes", "3"]),
                               (["--world-size", 2, "--lanes", 8, "--batch", 3], ["lanes", "8"])):
            self.assert_refused(["stream", "data.h5", *options], 2, names, r"multiple|divide|use")


class LauncherTest(CliTest):
    """--ranks-from-env as a person who made a mistake meets it; the variables are tested elsewhere."""

    def setUp(self):
        super().setUp()
        with h5py.File(self.dir / "data.h5", "w") as file:
            file["images"] = np.arange(40 * 192).astype(np.uint8).reshape(40, 8, 8, 3)

    def run_with(self, **variables):
        unset = [option for name in VARIABLES for option in ("-u", name)]
        command = ["env", *unset, *(f"{name}={value}" for name, value in variables.items()), H5PACK, "stream",
                   "data.h5", "--ranks-from-env", "--json", "--quiet"]
        return subprocess.run(command, cwd=self.dir, timeout=120, text=True, capture_output=True)

    def test_every_launcher(self):
        for rank, world_size in (VARIABLES[i:i + 2] for i in range(0, 8, 2)):
            result = self.run_with(**{rank: 2, world_size: 4})
            self.assertEqual(result.returncode, 0, result.stderr)
            report = json.loads(result.stdout)
            self.assertEqual((report["rank"], report["world_size"], report["images"]), (2, 4, 10))

    def test_mistakes(self):
        for variables, names in (({"RANK": 1}, ["RANK", "WORLD_SIZE"]),
                                 ({"WORLD_SIZE": 2}, ["RANK", "WORLD_SIZE"]),
                                 ({"RANK": 4, "WORLD_SIZE": 4}, ["RANK", "WORLD_SIZE", "4"]),
                                 ({"RANK": -1, "WORLD_SIZE": 4}, ["RANK"]),
                                 ({"RANK": "x", "WORLD_SIZE": 4}, ["RANK", "x"]),
                                 ({"RANK": "", "WORLD_SIZE": 4}, ["RANK"]),
                                 ({"SLURM_PROCID": 3, "SLURM_NTASKS": 2}, ["SLURM_PROCID", "SLURM_NTASKS"]),
                                 ({"OMPI_COMM_WORLD_RANK": 0}, ["OMPI_COMM_WORLD_SIZE"]),
                                 ({}, ["RANK", "WORLD_SIZE", "SLURM_PROCID"])):
            with self.subTest(variables):
                result = self.run_with(**variables)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                for name in names:
                    self.assertIn(name, result.stderr)


if __name__ == "__main__":
    unittest.main()
