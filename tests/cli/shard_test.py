"""h5pack --shard: files packed by several runs are the file that one run makes, and are read as one dataset."""

import os
import shutil

import h5py
import numpy as np

from h5_contents import datasets_and_attributes
from sources import write_celeba, write_cifar10
from support import CliTest, arrays, chunk_offset, flip, make_class_folder, write_picture

PER_CLASS = 23
CHUNK = 4
TOTAL = 2 * PER_CLASS
CHUNKS = -(-TOTAL // CHUNK)


class ShardTest(CliTest):
    def setUp(self):
        super().setUp()
        make_class_folder(self.dir / "photos", ["cat", "dog"], PER_CLASS)

    def pack(self, output, *options, source="photos", command="folder", code=0):
        result = self.run_h5pack(command, source, "-o", output, "--chunk", CHUNK, "--seed", 3, "--quiet", *options)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def pack_shards(self, output, count, *options, **more):
        for i in range(count):
            self.pack(output, "--shard", f"{i}/{count}", *options, **more)

    def shard(self, name, i, count):
        return self.dir / f"{name}-{i:05d}-of-{count:05d}.h5"

    def assert_same_as(self, whole, shards):
        """`shards` one after the other are the file `whole`, digests and all."""
        datasets, said, _ = datasets_and_attributes(whole)
        parts = [datasets_and_attributes(path) for path in shards]
        for name, values in datasets.items():
            np.testing.assert_array_equal(np.concatenate([part[0][name] for part in parts]), values, name)
        for name in {"class_names", "attribute_names"} & set(said):
            for part in parts:
                np.testing.assert_array_equal(part[1][name], said[name])
        if "class_counts" in said:
            np.testing.assert_array_equal(sum(part[1]["class_counts"] for part in parts), said["class_counts"])

    def test_shards_are_the_file_of_one_run(self):
        for order in ("shuffled", "source"):
            self.pack("whole.h5", "--order", order, "--force")
            for count in (1, 2, 3, 5, CHUNKS):
                with self.subTest((order, count)):
                    self.pack_shards("train.h5", count, "--order", order, "--force")
                    paths = [self.shard("train", i, count) for i in range(count)]
                    self.assert_same_as(self.dir / "whole.h5", paths)
                    sizes = [-(-len(arrays(path)["images"]) // CHUNK) for path in paths]
                    self.assertLessEqual(max(sizes) - min(sizes), 1, "shards are balanced")

    def test_every_source(self):
        write_cifar10(self.dir / "cifar-in")
        write_celeba(self.dir / "celeba-in", 40, size=(20, 16))
        rows = ["path,label"] + [f"photos/{name}/{i:03d}.jpg,{name}" for i in range(PER_CLASS) for name in ("cat", "dog")]
        (self.dir / "list.csv").write_text("\n".join(rows) + "\n")
        self.pack("whole.h5", command="csv", source="list.csv")
        self.pack_shards("parts.h5", 3, command="csv", source="list.csv")
        self.assert_same_as(self.dir / "whole.h5", [self.shard("parts", i, 3) for i in range(3)])
        for command, splits in (("cifar", ("train", "test")), ("celeba", ("train",))):
            self.pack(command, command=command, source=f"{command}-in")
            self.pack_shards(f"{command}-parts", 2, command=command, source=f"{command}-in")
            for split in splits:
                self.assert_same_as(self.dir / command / f"{split}.h5",
                                    [self.shard(f"{command}-parts/{split}", i, 2) for i in range(2)])

    def test_attributes(self):
        self.pack_shards("train.h5", 2)
        firsts, sets = [], set()
        for i in range(2):
            with h5py.File(self.shard("train", i, 2)) as file:
                self.assertEqual((file.attrs["shard_index"], file.attrs["shard_count"]), (i, 2))
                self.assertEqual(file.attrs["shard_total_rows"], TOTAL)
                firsts.append((file.attrs["shard_first_row"], len(file["images"])))
                sets.add(file.attrs["shard_set"])
        self.assertEqual(len(sets), 1)
        self.assertEqual(firsts[1][0], firsts[0][1])
        info, = self.h5pack_json("info", self.shard("train", 1, 2))
        self.assertEqual((info["shard"]["index"], info["shard"]["count"]), (1, 2))
        self.assertIn("shard 1 of 2", self.h5pack("info", self.shard("train", 1, 2)))

    def test_stream_info_and_verify_take_the_pattern(self):
        # Chunks of more than a mebibyte, since smaller ones share row groups within a file.
        self.pack("whole.h5", "--resize", "320x320")
        self.pack_shards("train.h5", 3, "--resize", "320x320")
        pattern = "train-*-of-00003.h5"
        whole, = self.h5pack_json("stream", "whole.h5", "--digest", "--fields", "source_index", "--shuffle-quality")
        for source in ("auto", "mapped", "scatter", "direct", "hdf5"):
            report, = self.h5pack_json("stream", pattern, "--digest", "--fields", "source_index", "--shuffle-quality",
                                       "--source", source, "--verify", "always")
            for key in ("images", "order_digest", "pixel_digest", "field_digests", "same_chunk_pair_rate"):
                if key in whole:
                    self.assertEqual(report[key], whole[key], (source, key))
        info, = self.h5pack_json("info", pattern)
        one, = self.h5pack_json("info", "whole.h5")
        for key in ("num_samples", "shape", "classes", "fields", "labels", "seed", "source_sizes", "split"):
            self.assertEqual(info[key], one[key], key)
        for name, tolerance in (("mean", 1e-12), ("std", 1e-12), ("mean_picture_std", 1e-7)):
            np.testing.assert_allclose(info["statistics"][name], one["statistics"][name], atol=tolerance)
        self.assertEqual([shard["first_row"] for shard in info["shards"]], [0, 16, 32])
        self.assertIn("3 files", self.h5pack("info", pattern))
        self.h5pack("verify", pattern, "--against", "photos", "--sample", "all", "--quiet")
        self.h5pack("preview", pattern, "-o", "sheet.png")

        # Damage is found in its file, and told by what was lost.
        path = self.shard("train", 1, 3)
        lost = arrays(path)["source_index"][:CHUNK]
        flip(path, chunk_offset(path))
        result = self.run_h5pack("verify", pattern, "--quiet")
        self.assertEqual(result.returncode, 4)
        self.assertIn(f"chunk 0 (rows 0 to 3) of images in {path.name}", result.stdout)
        name = f"{lost[0] % PER_CLASS:03d}.jpg"
        self.assertIn(name, result.stdout)

    def test_repack_makes_one_file_of_them(self):
        self.pack("whole.h5")
        self.pack_shards("train.h5", 3)
        self.h5pack("repack", "train-*-of-00003.h5", "-o", "merged.h5", "--chunk", CHUNK)
        self.assert_same_as(self.dir / "whole.h5", [self.dir / "merged.h5"])
        self.assertNotIn("shard_index", datasets_and_attributes(self.dir / "merged.h5")[1])

    def test_skipped_pictures_make_shards_shorter(self):
        bad = [self.dir / "photos/cat/003.jpg", self.dir / "photos/dog/011.jpg", self.dir / "photos/dog/012.jpg"]
        for path in bad:
            path.write_bytes(path.read_bytes()[:300])
        self.pack("whole.h5", "--on-error", "skip", code=3)
        for i in range(3):
            self.run_h5pack("folder", "photos", "-o", "train.h5", "--chunk", CHUNK, "--seed", 3, "--shard", f"{i}/3",
                            "--on-error", "skip", "--report", "bad.jsonl", "--quiet")
        self.assert_same_as(self.dir / "whole.h5", [self.shard("train", i, 3) for i in range(3)])
        reports = "".join((self.dir / f"bad-{i:05d}-of-00003.jsonl").read_text() for i in range(3))
        self.assertEqual(len(reports.splitlines()), 3)
        report, = self.h5pack_json("stream", "train-*-of-00003.h5", "--digest")
        whole, = self.h5pack_json("stream", "whole.h5", "--digest")
        self.assertEqual((report["images"], report["pixel_digest"]), (TOTAL - 3, whole["pixel_digest"]))
        self.assertEqual(report["chunk_loads"], report["row_groups"], "each chunk is loaded once")

    def test_outputs_are_not_replaced_unasked(self):
        self.pack("train.h5", "--shard", "0/2")
        arguments = ["folder", "photos", "-o", "train.h5", "--chunk", CHUNK, "--shard", "0/2"]
        self.assert_refused(arguments, 1, ["train-00000-of-00002.h5"], "--force")
        self.h5pack(*arguments, "--force")

    def test_wrong_numbers(self):
        for text in ("2/2", "-1/2", "1/0", "0/4097", "1", "", "a/b", "0/2/3", "1/ 2", "1.0/2", "0x0/2"):
            self.assert_refused(["folder", "photos", "-o", "train.h5", f"--shard={text}"], 2, ["--shard", text], "0/8")
        self.assert_refused(["folder", "photos", "-o", "train.h5", "--chunk", CHUNK, "--shard", "0/13"], 2,
                            ["12 chunks of 4", "13 shards"], "at most 12 shards, or smaller chunks.*--chunk")
        self.assert_refused(["folder", "photos", "-o", "train.h5", "--shard", "0/2", "--shard-from-env"], 2,
                            ["--shard"], "help")

    def test_dry_run(self):
        plans = [self.h5pack_json("folder", "photos", "-o", "train.h5", "--chunk", CHUNK, "--dry-run", "--shard",
                                  f"{i}/5")[0]["outputs"][0] for i in range(5)]
        self.assertEqual(sum(plan["images"] for plan in plans), TOTAL)
        self.assertEqual([plan["shard"] for plan in plans], [f"{i}/5" for i in range(5)])
        self.assertTrue(plans[3]["path"].endswith("train-00003-of-00005.h5"))
        self.assertEqual(list(self.dir.glob("train*")), [])

    def test_shards_of_copies_of_the_source_belong_together(self):
        shutil.copytree(self.dir / "photos", self.dir / "elsewhere/copy")
        for path in (self.dir / "elsewhere").rglob("*.jpg"):
            os.utime(path, (1, 1))
        self.pack("whole.h5")
        self.pack("train.h5", "--shard", "0/2")
        self.pack("train.h5", "--shard", "1/2", source="elsewhere/copy")
        self.assert_same_as(self.dir / "whole.h5", [self.shard("train", i, 2) for i in range(2)])
        self.h5pack("info", "train-*-of-00002.h5")

    def test_shards_that_do_not_belong_together(self):
        pattern = "train-*-of-00002.h5"
        self.pack("train.h5", "--shard", "0/2")
        self.assert_refused(["info", pattern], 1, [pattern, "train-00001-of-00002.h5"], "missing.*pack or copy")
        second = ["folder", "photos", "-o", "train.h5", "--shard", "1/2", "--quiet", "--force"]
        for options in (["--chunk", 5], ["--chunk", CHUNK, "--orientation", "apply"]):
            self.h5pack(*second, "--seed", 3, *options)
            self.assert_refused(["info", pattern], 1, ["train-00001-of-00002.h5", "shard_set"], "pack it again")
        write_picture(self.dir / "photos/dog/extra.jpg", 999)
        self.h5pack(*second, "--chunk", CHUNK, "--seed", 3)
        self.assert_refused(["stream", pattern], 1, ["train-00001-of-00002.h5", "47", "46"], "pack it again")

    def test_link(self):
        self.pack("whole.h5")
        self.pack_shards("train.h5", 3)
        link = ["link", "train-*-of-00003.h5", "-o", "all.h5"]
        self.h5pack(*link)
        with h5py.File(self.dir / "all.h5") as made, h5py.File(self.dir / "whole.h5") as whole:
            self.assertEqual(set(made), set(whole) - {"sample_digests"})
            for name in made:
                self.assertTrue(made[name].is_virtual)
                np.testing.assert_array_equal(made[name][()], whole[name][()])
            self.assertEqual((made.attrs["seed"], made.attrs["shard_pattern"]), (3, b"train-*-of-00003.h5"))
            np.testing.assert_array_equal(made["images"].attrs["class_names"], whole["images"].attrs["class_names"])
        self.assert_refused(["stream", "all.h5", "--allow-external"], 1, ["all.h5"],
                            "open 'train-\\*-of-00003.h5' instead")
        self.assert_refused(link, 1, ["all.h5"], "--force")
        self.h5pack(*link, "--force")
        self.assert_refused(["link", "whole.h5", "-o", "x.h5"], 2, ["whole.h5"], "several, as in")

    def test_shards_of_a_launcher(self):
        self.pack("whole.h5")
        for rank in ("0", "1"):
            self.h5pack("folder", "photos", "-o", "env.h5", "--chunk", CHUNK, "--seed", 3, "--shard-from-env",
                        environment={"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": "2"})
        self.assert_same_as(self.dir / "whole.h5", [self.shard("env", i, 2) for i in range(2)])
