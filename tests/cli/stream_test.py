"""h5pack stream: what it reports, and that what it delivers never depends on how it reads."""

import dataclasses
import functools
import json
import operator
import re

import h5py
import numpy as np
from PIL import Image

from support import SKIPPED, CliTest, arrays, chunk_offset, flip, make_class_folder, picture

KEYS = {"epoch", "rank", "world_size", "images", "batches", "seconds", "images_per_second", "bytes_per_second",
        "bytes_delivered", "bytes_read", "read_amplification", "row_groups", "chunk_loads", "loads_per_group",
        "hit_rate", "stall_seconds", "stall_fraction", "plan_seconds", "read_seconds", "decode_seconds",
        "copy_seconds", "input_wait_seconds", "output_wait_seconds", "num_threads", "bottleneck", "advice",
        "skipped_images", "skipped", "source", "source_reason", "direct_io", "disk_limit", "resident", "verify", "on_error",
        "order", "seed", "samples", "batch_size", "drop_last", "lanes", "uneven", "group_samples",
        "labels", "why_no_labels", "window_groups", "memory_bytes", "order_digest"}
SOURCES = ("mapped", "scatter", "direct", "hdf5")


def pictures(count):
    return np.stack([picture(i) for i in range(count)])


@dataclasses.dataclass
class Delivered:
    """Digests of samples, which add up mod 2^64."""

    images: int
    digests: dict

    def __add__(self, other):
        return Delivered(self.images + other.images, {name: (digest + other.digests[name]) % 2**64
                                                      for name, digest in self.digests.items()})


def delivered(epochs):
    parts = (Delivered(e["images"], {name: int(digest, 16) for name, digest in
                                     {"": e["pixel_digest"], **e["field_digests"]}.items()}) for e in epochs)
    return functools.reduce(operator.add, parts)


class StreamTest(CliTest):
    def pack(self, count=60, chunk=7, **size):
        self.pack_photos("--chunk", chunk, per_class=count // 2, **size)

    def pack_large(self):
        """60 images in 9 chunks, each of more than a mebibyte, so that each is a row group of its own."""
        self.pack(height=256, width=256)
        return 60 * 256 * 256 * 3

    def digests(self, *arguments):
        return [(e["order_digest"], e["pixel_digest"]) for e in self.h5pack_json("stream", *arguments, "--digest")]

    def delivered(self, *arguments):
        """What all epochs of a run delivered: pixels, labels and fields; numbers that add up."""
        return delivered(self.h5pack_json("stream", *arguments, "--digest"))

    def test_report(self):
        image_bytes = self.pack_large()
        epochs = self.h5pack_json("stream", "photos.h5", "--epochs", 3, "--batch", 16, "--source", "hdf5")
        self.assertEqual([e["epoch"] for e in epochs], [0, 1, 2])
        for epoch in epochs:
            self.assertLessEqual(KEYS, set(epoch))
            self.assertNotIn("pixel_digest", epoch)
            self.assertEqual((epoch["images"], epoch["batches"], epoch["batch_size"]), (60, 4, 16))
            self.assertEqual((epoch["row_groups"], epoch["chunk_loads"]), (9, 9))
            self.assertEqual((epoch["skipped_images"], epoch["skipped"]), (0, []))
            self.assertAlmostEqual(epoch["hit_rate"], 1 - 9 / 60)
            self.assertAlmostEqual(epoch["read_amplification"], 1, places=6)
            self.assertAlmostEqual(epoch["images_per_second"] * epoch["seconds"], 60, places=3)
            self.assertAlmostEqual(epoch["bytes_per_second"] * epoch["seconds"], image_bytes, places=1)
            self.assertTrue(0 <= epoch["stall_seconds"] <= epoch["seconds"])
            self.assertAlmostEqual(epoch["stall_fraction"], epoch["stall_seconds"] / epoch["seconds"])
            self.assertLessEqual(epoch["memory_bytes"], 1 << 30)
            self.assertRegex(epoch["order_digest"], r"^[0-9a-f]{16}$")
            stages = [epoch[f"{stage}_seconds"]
                      for stage in ("plan", "read", "decode", "copy", "input_wait", "output_wait")]
            self.assertGreater(sum(stages), 0)
            self.assertGreaterEqual(min(stages), 0)
            self.assertIn(epoch["bottleneck"], ("disk", "decode", "copy", "plan", "consumer", "buffers"))
            self.assertRegex(epoch["advice"], r"^[A-Z].*\.$")
        epochs = self.h5pack_json("stream", "photos.h5", "--batch", 16, "--epochs", 5, "--steps", 6)
        self.assertEqual([(e["epoch"], e["batches"], e["images"]) for e in epochs], [(0, 4, 60), (1, 2, 32)])

    def test_text(self):
        self.pack()
        text = self.h5pack("stream", "photos.h5", "--epochs", 2, "--digest", "--shuffle-quality")
        for part in ("images/s", "chunk loads", "hit rate", "stall", "source mapped", "60 images", "plan",
                     "input wait", "advice", "read amplification", "bits", "pixels"):
            self.assertIn(part, text)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80, line)
        for label, images in (("epoch 0", 60), ("epoch 1", 60), ("all epochs", 120)):
            self.assertRegex(text, rf"(?m)^{label} +{images} images in ")
        self.assertNotIn("all epochs", self.h5pack("stream", "photos.h5"))

    def test_text_ends_with_the_source_that_was_found_out_to_be_fastest(self):
        self.write_h5("large.h5", images={"data": np.zeros((4096, 64, 64, 3), np.uint8), "chunks": (64, 64, 64, 3)})
        epochs = 40  # of 50 MB: more than all turns of all sources
        text = self.h5pack("stream", "large.h5", "--epochs", epochs, "--quiet")
        head, end = text.split("\nepoch 0 ")
        self.assertIn("to be tried: ", " ".join(head.split()))
        found = re.search(r"(?m)^source +(mapped|scatter) ((?:.|\n +)+)", end)
        self.assertTrue(found, end)
        self.assertRegex(" ".join(found[2].split()), r"[; ]tried: mapped \S+, .* GB/s a thread; in use: " + found[1])
        # Where nothing was found out there is nothing to add.
        self.pack()
        self.assertNotRegex(self.h5pack("stream", "photos.h5"), r"(?m)^source")

    def test_same_batches_however_they_are_read(self):
        self.pack()
        for order in ("chunk_shuffled", "sequential", "random"):
            with self.subTest(order):
                common = ["photos.h5", "--order", order, "--epochs", 2, "--batch", 8, "--seed", 3,
                          "--window-bytes", "64KiB"]
                expected = self.digests(*common)
                ways = [["--source", source, "--threads", threads] for source in SOURCES for threads in (1, 2)]
                if order == "chunk_shuffled":
                    ways += [["--direct-io", "--source", "scatter"], ["--direct-io", "--source", "direct"],
                             ["--resident", "host"], ["--prefetch", 20], ["--verify", "always"],
                             ["--verify", "first-epoch"], ["--on-error", "skip"], ["--simulate-disk", "cloud-volume"]]
                for way in ways:
                    self.assertEqual(self.digests(*common, *way), expected, way)

    def test_a_slower_disk(self):
        self.pack()
        epoch, = self.h5pack_json("stream", "photos.h5", "--limit-bandwidth", "2MB/s", "--limit-queue", 3)
        self.assertEqual(epoch["disk_limit"], {"profile": "custom", "bytes_per_second": 2e6, "request_seconds": 0,
                                               "queue_depth": 3})
        self.assertGreaterEqual(epoch["seconds"], 60 * 3072 / 2e6)
        self.assertEqual(epoch["bottleneck"], "disk")
        epoch, = self.h5pack_json("stream", "photos.h5")
        self.assertIsNone(epoch["disk_limit"])
        text = self.h5pack("stream", "photos.h5", "--simulate-disk", "hdd", "--limit-latency", "8ms")
        self.assertIn("limited to a disk of 156 MB/s, 8 ms a request, 1 at a time", " ".join(text.split()))
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_order_changes_with_seed_and_epoch_and_pixels_do_not(self):
        self.pack()
        digests = self.digests("photos.h5", "--epochs", 3) + self.digests("photos.h5", "--seed", 1)
        self.assertEqual(len({order for order, _ in digests}), 4)
        self.assertEqual(len({pixels for _, pixels in digests}), 1)
        again = self.digests("photos.h5", "--epochs", 3)
        self.assertEqual(again, digests[:3])
        first, second = self.digests("photos.h5", "--order", "sequential", "--epochs", 2)
        self.assertEqual(first, second)

    def test_pixel_digest_goes_by_source(self):
        """Files packed in different order or chunks from one source hold the same images."""
        self.pack()
        self.h5pack("folder", "photos", "-o", "other.h5", "--order", "source", "--chunk", 16)
        (_, first), (_, other) = self.digests("photos.h5") + self.digests("other.h5")
        self.assertEqual(first, other)
        with h5py.File(self.dir / "other.h5", "r+") as file:
            file["images"][33, 1, 2, 0] ^= 1
        self.assertNotEqual(self.digests("other.h5")[0][1], first)

    def test_drop_last(self):
        self.pack()
        epoch, = self.h5pack_json("stream", "photos.h5", "--batch", 16, "--drop-last")
        self.assertEqual((epoch["images"], epoch["batches"]), (48, 3))
        self.assert_refused(["stream", "photos.h5", "--batch", 61, "--drop-last"], 2,
                            ["photos.h5", "61", "60 samples", "drop_last"], r"lower batch_size to 60")

    def test_consume_ms_is_no_stall(self):
        self.pack()
        epoch, = self.h5pack_json("stream", "photos.h5", "--batch", 4, "--step-ms", 20)
        self.assertGreaterEqual(epoch["seconds"], 15 * 0.020)
        self.assertLess(epoch["stall_fraction"], 0.5)

    def test_resident_reads_once(self):
        image_bytes = self.pack_large()
        epochs = self.h5pack_json("stream", "photos.h5", "--epochs", 3, "--resident", "host")
        self.assertEqual([epoch["resident"] for epoch in epochs], ["host"] * 3)
        self.assertEqual(sum(epoch["bytes_read"] for epoch in epochs), image_bytes)
        self.assertEqual(sum(epoch["chunk_loads"] for epoch in epochs), 9)
        self.assertIn("resident host", self.h5pack("stream", "photos.h5", "--resident", "host"))

    def test_rows_and_labels_are_chosen(self):
        self.pack()
        every = self.delivered("photos.h5")
        cats = self.delivered("photos.h5", "--labels", "cat", "--batch", 7)
        dogs = self.delivered("photos.h5", "--labels", 1)
        self.assertEqual((cats.images, dogs.images, cats + dogs), (30, 30, every))
        chosen = self.delivered("photos.h5", "--rows", "0:10,17,40:60", "--batch", 8)
        others = self.delivered("photos.h5", "--rows", "18:40,10:17")
        self.assertEqual((chosen.images, others.images, chosen + others), (31, 29, every))
        self.assertIn("31 of them chosen", self.h5pack("stream", "photos.h5", "--rows", "0:10,17,40:60"))
        rows = np.flatnonzero(arrays(self.dir / "photos.h5")["labels"][:20] == 0)
        both, = self.h5pack_json("stream", "photos.h5", "--labels", "cat", "--rows", "0:20")
        self.assertEqual((both["images"], both["samples"]), (len(rows), len(rows)))

    def test_images_without_a_channel_axis(self):
        images = np.stack([picture(i, 28, 28, 1) for i in range(60)])
        for name, shape in (("three.h5", (60, 28, 28)), ("four.h5", (60, 28, 28, 1))):
            self.write_h5(name, x_train=images.reshape(shape), x_test=images[:10].reshape(10, *shape[1:]),
                          y_train=(np.arange(60) % 10).astype(np.uint8))
        self.assert_refused(["stream", "three.h5"], 1, ["three.h5", "x_test", "x_train uint8 [60,28,28]"], "--images")
        options = ["--images", "x_train", "--label-field", "y_train"]
        for source in SOURCES:
            with self.subTest(source):
                # Only the order within an epoch depends on the shape, through the seed's digest: samples are the same.
                self.assertEqual(self.delivered("three.h5", *options, "--source", source).digests,
                                 self.delivered("four.h5", *options, "--source", source).digests)
        self.assertIn("60 images of [28,28,1]", self.h5pack("stream", "three.h5", *options))
        info, = self.h5pack_json("info", "three.h5", *options)
        self.assertEqual((info["shape"], info["layout"], info["channels"]), ([60, 28, 28, 1], "nhwc", 1))
        self.assertEqual(info["storage"]["shape"], [60, 28, 28])
        self.assertIn("60 x [28,28,1] uint8, layout nhwc (dataset /x_train, stored as [60,28,28])",
                      self.h5pack("info", "three.h5", *options))
        for command in (["verify", "three.h5"], ["preview", "three.h5", "-o", "sheet.png"],
                        ["export", "three.h5", "-o", "pictures"], ["tune", "three.h5"],
                        ["doctor", "three.h5", "--step-ms", 1]):
            with self.subTest(command[0]):
                self.h5pack(*command, *options)
        exported = sorted((self.dir / "pictures" / "3").iterdir())
        self.assertEqual(len(exported), 6)
        with Image.open(exported[0]) as file:
            np.testing.assert_array_equal(np.asarray(file.convert("L")), images[3])
        shard = self.dir / "x-00000-of-00001.h5"
        (self.dir / "three.h5").rename(shard)
        self.h5pack("link", "x-*-of-00001.h5", "-o", "all.h5", *options)
        self.assertEqual(self.delivered("x-*-of-00001.h5", *options).digests,
                         self.delivered("four.h5", *options).digests)

    def test_every_command_that_reads_takes_the_label_field(self):
        for name in ("x.h5", "x-00000-of-00001.h5"):
            self.write_h5(name, images=pictures(12), y=(np.arange(12) % 3)[:, None] == 1)
        make_class_folder(self.dir / "photos", ["cat"], 1)
        for command in (["info", "x.h5"], ["stream", "x.h5"], ["verify", "x.h5"], ["repack", "x.h5", "-o", "new.h5"],
                        ["append", "x.h5", "folder", "photos", "-o", "new.h5"], ["export", "x.h5", "-o", "new"],
                        ["preview", "x.h5", "-o", "new.png"], ["tune", "x.h5"], ["doctor", "x.h5", "--step-ms", 1],
                        ["link", "x-*-of-00001.h5", "-o", "new.h5"]):
            with self.subTest(command[0]):
                self.assert_refused([*command[:2], "--label-field", "absent", *command[2:]], 1,
                                    ["absent", command[1].replace("*", "00000")], "it holds .*y bool")
        self.h5pack("repack", "x.h5", "-o", "new.h5", "--label-field", "y")
        self.h5pack("export", "x.h5", "-o", "pictures", "--label-field", "y")
        self.h5pack("link", "x-*-of-00001.h5", "-o", "link.h5", "--label-field", "y")
        for name in ("new.h5", "link.h5"):
            labels = arrays(self.dir / name)["labels" if name == "new.h5" else "y"]
            np.testing.assert_array_equal(labels.ravel(), np.arange(12) % 3 == 1)
        linked, = self.h5pack_json("stream", "x-*-of-00001.h5", "--label-field", "y", "--labels", "1")
        self.assertEqual(linked["images"], 4)
        self.assertEqual(len(list((self.dir / "pictures" / "1").iterdir())), 4)
        self.assertIn('{.labels = "y"}', self.h5pack_json("tune", "x.h5", "--label-field", "y")[0]["commands"]["cpp"])

    def test_state(self):
        """A run in three parts, read in different ways, delivers what one run delivers."""
        self.pack()
        common = ["photos.h5", "--batch", 8, "--epochs", 3, "--window-bytes", "64KiB", "--seed", 5]
        again = ["photos.h5", "--epochs", 3, "--seed", 5]  # the rest is in the state
        every = self.delivered(*common)
        first = self.delivered(*common, "--steps", 3, "--state-out", "a.json")
        second = self.delivered(*again, "--state-in", "a.json", "--steps", 11, "--state-out", "b.json",
                                "--source", "hdf5", "--threads", 1)
        third = self.delivered(*again, "--state-in", "b.json", "--source", "direct", "--prefetch", 1)
        self.assertEqual((first.images, second.images), (24, 36 + 48))
        self.assertEqual(first + second + third, every)
        # The state knows nothing of the parts, and the batches are the same, one by one.
        until = self.delivered(*common, "--steps", 14, "--state-out", "c.json")
        self.assertEqual(first + second, until)
        self.assertEqual((self.dir / "b.json").read_text(), (self.dir / "c.json").read_text())
        one_more = self.digests(*common, "--steps", 9)[1]  # batch 0 of epoch 1
        self.h5pack("stream", *common, "--steps", 8, "--state-out", "d.json")
        after = self.digests(*again, "--state-in", "d.json", "--steps", 1)
        self.assertEqual(after[-1], one_more)

    def test_state_on_standard_streams(self):
        self.pack()
        common = ["photos.h5", "--batch", 8, "--json", "--digest"]
        # Digests are of a second pass, and the state is there before it.
        state, epoch = self.h5pack("stream", *common, "--steps", 5, "--state-out", "-").splitlines()
        self.assertEqual(json.loads(state)["step"], 5)
        rest = json.loads(self.h5pack("stream", "photos.h5", "--json", "--digest", "--state-in", "-", input=state))
        self.assertEqual(delivered([json.loads(epoch), rest]), self.delivered("photos.h5", "--batch", 8))

    def test_states_that_do_not_fit(self):
        self.pack()
        self.h5pack("stream", "photos.h5", "--batch", 8, "--steps", 2, "--state-out", "state.json")
        # An epoch beyond the last one.
        self.h5pack("stream", "photos.h5", "--batch", 8, "--epochs", 2, "--steps", 12, "--state-out", "late.json")
        (self.dir / "text.json").write_text("{}")
        (self.dir / "empty.json").touch()
        for arguments, code, names, way_out in (
                (["state.json", "--seed", 1], 2, ["state.json", "seed is 0"], r"use"),
                (["state.json", "--batch", 4], 2, ["--batch", "--state-in"], r"excludes"),
                (["nowhere.json"], 1, ["nowhere.json"], r"No such file"),
                (["photos.h5"], 1, ["photos.h5"], r"--state-out"),
                (["text.json"], 2, ["text.json", "not a loader state"], r"Loader::state|--state"),
                (["empty.json"], 1, ["empty.json"], r"empty"),
                (["late.json"], 2, ["late.json", "epoch 1"], r"--epochs 2")):
            self.assert_refused(["stream", "photos.h5", "--state-in", *arguments], code, names, way_out)
        # Only states are replaced.
        self.h5pack("stream", "photos.h5", "--state-out", "late.json")
        for name, said, way_out in (("photos.h5", "photos.h5", r"choose another name"),
                                    ("no/s.json", "no/s.json", r"create it"),
                                    ("empty.json", "is empty", r"choose another name")):
            self.assert_refused(["stream", "photos.h5", "--state-out", name], 1, [name, said], way_out)

    def test_state_that_cannot_be_read_is_not_replaced(self):
        self.pack()
        self.dir.chmod(0o777)
        for content in (b"somebody else's", b'{"chunkio_state"'):
            (self.dir / "theirs.json").write_bytes(content)
            (self.dir / "theirs.json").chmod(0)
            self.assert_refused(["stream", "photos.h5", "--state-out", "theirs.json"], 1,
                                ["theirs.json", "cannot be read"], r"choose another name", unprivileged=True)
            self.assertEqual((self.dir / "theirs.json").stat().st_mode & 0o777, 0)
            (self.dir / "theirs.json").chmod(0o600)
            self.assertEqual((self.dir / "theirs.json").read_bytes(), content)

    def test_state_survives_reports_that_cannot_be_written(self):
        self.pack()
        stream = ["stream", "photos.h5", "--json", "--batch", 8, "--steps", 2, "--state-out"]
        self.h5pack(*stream, "expected.json")
        with open("/dev/full", "w") as full:
            result = self.run_h5pack(*stream, "state.json", "--digest", "--quiet", stdout=full)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual((self.dir / "state.json").read_text(), (self.dir / "expected.json").read_text())

    def damage(self, name, row):
        """Spoils the first row of the chunk with that row; returns the chunk's rows."""
        with h5py.File(self.dir / name, "r") as file:
            data = file["images"]
            number = row // data.chunks[0]
            rows = (number * data.chunks[0], min((number + 1) * data.chunks[0], len(data)))
        flip(self.dir / name, chunk_offset(self.dir / name, number) + 1000, 0xff)
        return rows

    def assert_skips(self, name, rows, *arguments):
        """All but `rows` are delivered, and what is left out is named."""
        first, end = rows
        arguments = [name, "--batch", 8, "--epochs", 2, *arguments, "--on-error", "skip"]
        epochs = self.h5pack_json("stream", *arguments, "--digest", "--quiet", code=SKIPPED)
        for epoch in epochs:
            self.assertEqual((epoch["images"], epoch["skipped_images"]), (40 - (end - first), end - first))
            self.assertEqual([(s["first_row"], s["num_rows"]) for s in epoch["skipped"]], [(first, end - first)])
            self.assertIn(name, epoch["skipped"][0]["reason"])
        left = ",".join(f"{a}:{b}" for a, b in ((0, first), (end, 40)) if a < b)
        self.assertEqual(delivered(epochs[:1]), self.delivered(name, "--rows", left))
        self.assertEqual(delivered(epochs[:1]), delivered(epochs[1:]))
        text = self.run_h5pack("stream", *arguments, "--quiet")
        self.assertEqual((text.returncode, text.stderr), (SKIPPED, ""))
        where = f"row {first}" if end == first + 1 else f"rows {first} to {end - 1}"
        self.assertRegex(text.stdout, rf"(?m)^skipped +{where}: ")

    def test_verify(self):
        self.pack(count=40)
        good = self.delivered("photos.h5")
        rows = self.damage("photos.h5", 39)
        self.assertEqual(rows, (35, 40))
        self.assertNotEqual(self.delivered("photos.h5"), good)
        for source in SOURCES:
            with self.subTest(source):
                for verify in ("first-epoch", "always"):
                    self.assert_fails(["stream", "photos.h5", "--verify", verify, "--source", source],
                                      r"rows 35 to .*images.*photos\.h5")
                self.assert_skips("photos.h5", (35, 36), "--verify", "always", "--source", source)
        self.write_h5("foreign.h5", images=pictures(4))
        self.assert_refused(["stream", "foreign.h5", "--verify", "always"], 1, ["foreign.h5", "digests"], r"verify")

    def shuffle_quality(self, *arguments):
        return [epoch["shuffle_quality"] for epoch in self.h5pack_json("stream", *arguments, "--shuffle-quality")]

    def test_shuffle_quality(self):
        self.pack(count=200, chunk=10)
        self.h5pack("folder", "photos", "-o", "sorted.h5", "--chunk", 10, "--order", "source")
        bad, = self.shuffle_quality("sorted.h5", "--batch", 20, "--window-bytes", "60KiB")
        self.assertTrue(bad["sorted_by_class"])
        self.assertAlmostEqual(bad["label_entropy"] / bad["global_label_entropy"], bad["label_entropy_ratio"])
        self.assertAlmostEqual(bad["same_chunk_pair_rate"], 9 / 19)  # a batch is two whole chunks
        self.assertAlmostEqual(bad["global_same_chunk_pair_rate"], 9 / 199)
        self.assertIn("warning: the file is sorted by class",
                      " ".join(self.h5pack("stream", "sorted.h5", "--shuffle-quality").split()))
        self.assertNotIn("warning", self.h5pack("stream", "photos.h5", "--shuffle-quality"))
        # A table of attributes is no class of a sample.
        self.write_h5("plain.h5", images=pictures(40), labels=np.arange(120).reshape(40, 3).astype(np.uint8) % 2)
        self.assertIsNone(self.shuffle_quality("plain.h5")[0]["label_entropy"])
        self.assertIn("no labels", self.h5pack("stream", "plain.h5", "--shuffle-quality"))
