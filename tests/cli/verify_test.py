"""h5pack verify: what it believes, what it does not, and which images it says are lost."""

import json
import os
import random

import h5py
import numpy as np

import sources
import under_strace
from h5_contents import assert_contents, contents
from support import (CliTest, arrays, chunk_offset, flip, make_class_folder, object_header, picture, tree,
                     write_picture)


class VerifyTest(CliTest):
    CHUNK = 4

    def setUp(self):
        super().setUp()
        self.samples = self.pack_photos("--chunk", self.CHUNK, per_class=11, height=16, width=20, output="out.h5")
        self.file = self.dir / "out.h5"
        self.offset = chunk_offset(self.file)
        self.source_index = arrays(self.file)["source_index"]
        self.chunk_bytes = self.CHUNK * 16 * 20 * 3

    def verify(self, *arguments, code=0):
        """The report, and the line on stderr."""
        result = self.run_h5pack("verify", *arguments, "--json", "--quiet")
        self.assertEqual(result.returncode, code, result.stderr)
        return json.loads(result.stdout), result.stderr

    def test_an_intact_file(self):
        before = tree(self.dir)
        report, stderr = self.verify("out.h5")
        self.assertEqual((report["intact"], report["chunks_compared"], report["damaged"],
                          report["problems"], report["not_compared"]), (True, 6, [], [], None))
        self.assertGreaterEqual(report["bytes_read"], 6 * self.chunk_bytes)
        self.assertEqual(stderr, "")
        self.assertEqual(tree(self.dir), before)
        self.assertRegex(self.h5pack("verify", "out.h5"), r"out\.h5: all 6 chunks match their digests")

    def test_damaged_chunks_come_with_their_rows_and_files(self):
        flip(self.file, self.offset + 2 * self.chunk_bytes + 777, 8)
        flip(self.file, self.offset + 5 * self.chunk_bytes + 2 * 960 - 1)  # of the last row
        flip(self.file, self.offset + 6 * self.chunk_bytes - 1)  # behind it: no sample
        report, stderr = self.verify("out.h5", code=4)
        self.assertFalse(report["intact"])
        self.assertEqual(len(stderr.splitlines()), 1)
        self.assertRegex(stderr, r"h5pack: out\.h5 is damaged; restore it from an intact copy")
        rows = [(d["chunk"], d["first_row"], d["num_rows"], d["code"]) for d in report["damaged"]]
        self.assertEqual(rows, [(2, 8, 4, "digest_mismatch"), (5, 20, 2, "digest_mismatch")])
        self.assertEqual([damage["rows"] for damage in report["damaged"]], [[8], [21]])
        for damage in report["damaged"]:
            lost = self.source_index[damage["rows"]]
            self.assertEqual(damage["source_rows"], list(lost))
            self.assertEqual([str(self.dir / name) for name in damage["files"]], [self.samples[row][0] for row in lost])
            self.assertEqual(damage["classes"], [["cat", "dog"][self.samples[row][1]] for row in lost])

        text = self.run_h5pack("verify", "out.h5", "--quiet").stdout
        self.assertIn("DAMAGED, 4 of 6 chunks match", text)
        self.assertIn("chunk 2 (rows 8 to 11)", text)
        self.assertIn(self.samples[self.source_index[8]][0].replace(str(self.dir) + "/", ""), text)
        self.assertIn(f"    of class {['cat', 'dog'][self.samples[self.source_index[8]][1]]} (1)\n", text)

    def test_all_classes_of_a_chunk_are_counted(self):
        classes = [["cat", "dog"][self.samples[row][1]] for row in self.source_index]
        chunk = next(n for n in range(5) if 3 in map(classes[4 * n : 4 * n + 4].count, ["cat", "dog"]))
        for row in range(self.CHUNK * chunk, self.CHUNK * (chunk + 1)):
            flip(self.file, self.offset + row * self.chunk_bytes // self.CHUNK)
        report, _ = self.verify("out.h5", code=4)
        self.assertEqual(report["damaged"][0]["classes"], classes[self.CHUNK * chunk : self.CHUNK * (chunk + 1)])
        self.assertRegex(self.run_h5pack("verify", "out.h5", "--quiet").stdout,
                         r"\n    of classes (cat \(3\), dog \(1\)|dog \(3\), cat \(1\))\n")

    def test_no_class_is_named_where_the_file_names_none(self):
        with h5py.File(self.file, "r+") as file:
            del file["images"].attrs["class_names"], file["images"].attrs["class_counts"]
        flip(self.file, self.offset)
        report, _ = self.verify("out.h5", code=4)
        self.assertEqual([damage["classes"] for damage in report["damaged"]], [[]])
        self.assertNotIn("of class", self.run_h5pack("verify", "out.h5", "--quiet").stdout)

    def test_files_that_are_gone_leave_the_source_rows(self):
        flip(self.file, self.offset)
        (self.dir / "photos").rename(self.dir / "elsewhere")
        report, _ = self.verify("out.h5", code=4)
        self.assertEqual(report["damaged"][0]["source_rows"], [self.source_index[0]])
        self.assertEqual(report["damaged"][0]["files"], [])
        self.assertIn("photos", report["files_unknown"])
        self.assertRegex(self.run_h5pack("verify", "out.h5", "--quiet").stdout, r"made from source row")

    def test_records_of_an_archive_are_named(self):
        sources.write_cifar10(self.dir / "cifar", per_batch=3)
        self.h5pack("cifar", "cifar", "-o", "packed", "--order", "source", "--chunk", 2)
        path = self.dir / "packed" / "train.h5"
        flip(path, chunk_offset(path) + 2 * 2 * 3072)
        report, _ = self.verify("packed/train.h5", code=4)
        self.assertEqual(report["damaged"][0]["files"], ["cifar/data_batch_2.bin, image 1"])

    def test_quick_reads_no_pictures(self):
        flip(self.file, self.offset)
        report, _ = self.verify("out.h5", "--quick")
        self.assertEqual((report["intact"], report["chunks_compared"], report["bytes_read"]), (True, 0, 0))
        self.assertIn("--quick", report["not_compared"])
        self.assertIn("structure is sound", self.h5pack("verify", "out.h5", "--quick"))

    def test_contradictions(self):
        cases = {
            "class_counts": lambda file: file["images"].attrs.modify("class_counts", [10, 12]),
            "source_index has row 3 twice": lambda file: file["source_index"].__setitem__(slice(2, 4), 3),
            "negative row -1": lambda file: file["source_index"].__setitem__(5, -1),
            "no JSON": lambda file: file.attrs.modify("options", np.bytes_(b"{half")),
        }
        whole = self.file.read_bytes()
        for problem, change in cases.items():
            for quick in ([], ["--quick"]):
                with self.subTest(problem, quick=quick):
                    self.file.write_bytes(whole)
                    with h5py.File(self.file, "r+") as file:
                        change(file)
                    report, _ = self.verify("out.h5", *quick, code=4)
                    self.assertEqual(len(report["problems"]), 1)
                    self.assertIn(problem, report["problems"][0])
                    # A changed source_index is damage of its samples, too.
                    changed_rows = "row" in problem and not quick
                    self.assertEqual(bool(report["damaged"]), changed_rows)

    def test_a_foreign_file_has_only_its_structure_checked(self):
        data = np.stack([picture(i, 8, 8) for i in range(20)])
        self.write_h5("foreign.h5", data={"data": data, "chunks": (3, 8, 8, 3), "compression": "gzip"},
                      labels=np.arange(20))
        report, _ = self.verify("foreign.h5")
        self.assertEqual((report["intact"], report["foreign"], report["chunks_compared"]), (True, True, 0))
        self.assertEqual(report["not_compared"], "it has no digests")
        self.assertIn("pixels were not compared: it has no digests", self.h5pack("verify", "foreign.h5"))

    def test_what_no_digest_covers_is_read_if_it_has_checksums(self):
        """Unless --quick leaves that out."""
        boxes = np.arange(80.0).reshape(20, 4)
        for name, said in (("images", r"rows 10 to 14.*images in foreign\.h5"), ("boxes", "boxes")):
            data = {"images": np.stack([picture(i, 8, 8) for i in range(20)]), "boxes": boxes}
            self.write_h5("foreign.h5", **{key: {"data": values, "chunks": (5, *values.shape[1:]), "fletcher32": True}
                                           for key, values in data.items()})
            self.verify("foreign.h5")
            flip(self.dir / "foreign.h5", chunk_offset(self.dir / "foreign.h5", 2, name) + 3)
            report, _ = self.verify("foreign.h5", code=4)
            self.assertEqual(len(report["problems"]), 1)
            self.assertRegex(report["problems"][0], said)
            self.verify("foreign.h5", "--quick")

    def test_what_cannot_be_checked_is_not_called_damaged(self):
        for name in ("absent.h5", "."):
            self.assert_refused(["verify", name], 1, [name], r"\w")
        self.assert_refused(["verify", "out.h5", "--against", "absent"], 1, ["absent"], r"\w")
        # So damaged that it does not open.
        whole = self.file.read_bytes()
        for name, content, said in (("short.h5", whole[:len(whole) // 2], "truncated"), ("empty.h5", b"", "empty"),
                                    ("text.h5", b"hello" * 99, "not an HDF5")):
            (self.dir / name).write_bytes(content)
            self.assert_refused(["verify", name], 4, [name, said], r";")
        for options in ([], ["out.h5", "--threads", "0"], ["out.h5", "--threads", "2000"], ["out.h5", "--sample", "5"],
                        ["out.h5", "--against", "photos", "--sample", "0"],
                        ["out.h5", "--against", "photos", "--sample", "some"]):
            self.assertEqual(self.run_h5pack("verify", *options).returncode, 2, options)

    def add_fields(self):
        """Objects that h5pack folder does not write, in the same format."""
        with h5py.File(self.file, "r+", libver="latest") as file:
            file["boxes"] = np.arange(88.0).reshape(22, 4)
            file["about/source"] = np.arange(3)

    def test_an_object_that_cannot_be_opened_is_damage(self):
        self.add_fields()
        whole = self.file.read_bytes()
        self.verify("out.h5")
        for name in ("source_index", "boxes", "about", "about/source"):
            with self.subTest(name):
                flip(self.file, object_header(self.file, name) + 17, 4)
                files = tree(self.dir)
                for quick in ([], ["--quick"]):
                    report, _ = self.verify("out.h5", *quick, code=4)
                    self.assertEqual(len(report["problems"]), 1)
                    self.assertIn(f"cannot open {name} of out.h5", report["problems"][0])
                for command in (["repack", "out.h5", "-o", "new.h5"], ["export", "out.h5", "-o", "new"],
                                ["append", "out.h5", "folder", "photos", "-o", "new.h5"]):
                    self.assert_refused(command, 1, [name, "out.h5"], r"; the file is damaged: restore it from an intact copy")
                for command in (["info", "out.h5", "--json"], ["stream", "out.h5", "--json", "--quiet"]):
                    result = self.run_h5pack(*command)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertRegex(result.stderr, f"^h5pack: warning: cannot open {name} of out.h5.*\n$")
                    self.assertEqual([each["name"] for each in json.loads(result.stdout)["damaged_objects"]], [name])
                self.assertEqual(tree(self.dir), files)
                self.file.write_bytes(whole)

    def test_who_names_the_fields_to_carry_leaves_behind_what_is_damaged(self):
        self.add_fields()
        with h5py.File(self.file, "r+", libver="latest") as file:
            file["weights"] = np.arange(22.0)
        flip(self.file, object_header(self.file, "boxes") + 17)
        self.h5pack("repack", "out.h5", "-o", "new.h5", "--fields", "weights")
        new = arrays(self.dir / "new.h5")
        self.assertEqual(set(new) & {"labels", "boxes", "about/source", "weights"}, {"labels", "weights"})
        np.testing.assert_array_equal(new["source_index"], self.source_index)
        for fields in ("boxes", "weights,boxes"):
            self.assert_refused(["repack", "out.h5", "-o", "newer.h5", "--fields", fields], 1, ["boxes", "out.h5"],
                                r"damaged, copy")
        flip(self.file, object_header(self.file, "source_index") + 17)
        self.assert_refused(["repack", "out.h5", "-o", "newer.h5", "--fields", "weights"], 1, ["source_index"],
                            r"damaged, copy")

    def test_a_shard_that_lost_an_object(self):
        for i in range(2):
            self.h5pack("folder", "photos", "-o", "train.h5", "--chunk", self.CHUNK, "--shard", f"{i}/2")
        shard = "train-00001-of-00002.h5"
        flip(self.dir / shard, object_header(self.dir / shard, "source_index") + 17)
        for command in (["verify"], ["info"], ["stream"], ["link", "-o", "all.h5"]):
            self.assert_refused([*command, "train-*-of-00002.h5"], 4 if command[0] == "verify" else 1,
                                ["source_index", shard], r"damaged, copy")

    def test_elements_with_parts_of_any_length_are_no_damage(self):
        """In memory such a part is a pointer, in the file a length and a place."""
        text = h5py.string_dtype()
        kinds = {"record": [("id", "i4"), ("name", text)], "nested": [("a", [("name", text), ("x", "f8")]), ("b", "i2")],
                 "several": [("names", text, (3,))], "text": text, "list": h5py.vlen_dtype("i2"),
                 "object": h5py.ref_dtype, "region": h5py.regionref_dtype}
        for options in ({}, {"compression": "gzip"}, {"compression": "lzf", "shuffle": True}):
            with self.subTest(options):
                with h5py.File(self.dir / "foreign.h5", "w") as file:
                    file["images"] = np.stack([picture(i, 8, 8) for i in range(20)])
                    for name, kind in kinds.items():
                        file.create_dataset(name, (20,), kind, chunks=(8,), **options)
                    file["record"][:] = np.array([(i, i * "x") for i in range(20)], kinds["record"])
                    file["text"][:] = [i * "x" for i in range(20)]
                    file["list"][3] = np.arange(3)
                    file["nested"][:4] = np.array([((i * "x", 1), i) for i in range(4)], kinds["nested"])
                    file["several"][:4] = np.array([(["a", "bc", ""],)] * 4, kinds["several"])
                    file["object"][2] = file["list"].ref
                    file["region"][2] = file["images"].regionref[:2]
                self.h5pack("verify", "foreign.h5")

    def test_every_attribute_and_every_dataset_is_read(self):
        def write():
            with h5py.File(self.dir / "foreign.h5", "w") as file:
                file["images"] = np.stack([picture(i, 8, 8) for i in range(20)])
                file["about/source"] = 7
                file["about/source"].attrs["made by"] = ["somebody", "else"]
                checked = {"chunks": True, "fletcher32": True}
                file.create_dataset("means", data=np.arange(3.0), **checked)
                file.create_dataset("names", data=np.array([[b"cat", b"dog"]] * 9), fillvalue=b"none", **checked)
                file.create_dataset("small", data=np.arange(5), compression="lzf")
                file.create_dataset("pairs", data=np.zeros(9, "u1,f8"), chunks=(4,), compression="gzip")
                file.create_dataset("deep", data=np.zeros((1,) * 8 + (5, 2)), **checked)
                file["empty"] = np.zeros((0, 3))
                file["nothing"] = h5py.Empty("f4")
                file["texts"] = ["one", "two"]
                offsets = {name: file[name].id.get_chunk_info(0).byte_offset
                           for name in ("means", "names", "pairs", "deep")}
            # The texts of one file lie in one heap.
            return {**offsets, "made by": (self.dir / "foreign.h5").read_bytes().index(b"GCOL")}

        write()
        self.verify("foreign.h5")
        for name, offset in write().items():
            with self.subTest(name):
                write()
                flip(self.dir / "foreign.h5", offset + 2)
                report, _ = self.verify("foreign.h5", code=4)
                self.assertIn(name, report["problems"][0])
                self.assertIn("foreign.h5", report["problems"][0])
                self.assertIn("about/source" if name == "made by" else name, report["problems"][0])
                self.verify("foreign.h5", "--quick")

    def test_a_dataset_that_claims_more_than_there_can_be_ends(self):
        self.write_h5("foreign.h5", images=np.stack([picture(i, 8, 8) for i in range(20)]),
                      sparse={"shape": (1 << 40,), "dtype": "f8", "chunks": (1024,), "compression": "gzip"})
        with h5py.File(self.dir / "foreign.h5", "r+") as file:
            file["sparse"][:10] = 1
        report, _ = self.verify("foreign.h5", code=4)
        self.assertRegex(report["problems"][0], r"sparse.*claims more bytes")


class AgainstTest(CliTest):
    """The source is decoded again, with the options that the file records."""

    def setUp(self):
        super().setUp()
        self.samples = make_class_folder(self.dir / "photos", ["cat", "dog"], 15, height=24, width=30)

    def verify(self, *arguments, code=0):
        return self.h5pack_json("verify", *arguments, "--quiet", code=code)[0]

    def test_every_packing_option_is_repeated(self):
        for options in ([], ["--resize", "16x20", "--interpolation", "bicubic", "--out-layout", "nchw"],
                        ["--resize", "12", "--center-crop", "10x8", "--channels", "gray", "--order", "source"],
                        ["--resize", "8x9", "--shrink-on-load", "--orientation", "apply"],
                        ["--pad", "40x41"]):
            with self.subTest(options):
                self.h5pack("folder", "photos", "-o", "out.h5", "--force", *options)
                report = self.verify("out.h5", "--against", "photos", "--sample", "all")
                self.assertEqual(report["source"], {"compared": 30, "different": []})

    def test_pictures_that_changed_are_named(self):
        self.h5pack("folder", "photos", "-o", "out.h5", "--seed", "4")
        write_picture(self.samples[3][0], 999, height=24, width=30)
        write_picture(self.samples[20][0], 20, height=10, width=10)
        report = self.verify("out.h5", "--against", "photos", "--sample", "all", code=4)
        self.assertEqual((report["damaged"], report["intact"]), ([], False))
        different = sorted(report["source"]["different"], key=lambda d: d["source_row"])
        self.assertEqual([d["source_row"] for d in different], [3, 20])
        self.assertEqual([str(self.dir / d["file"]) for d in different], [self.samples[3][0], self.samples[20][0]])
        self.assertRegex(different[0]["reason"], r"of 2160 bytes differ")
        self.assertIn("the samples have 24x30 pixels", different[1]["reason"])
        self.assertIn("gives 10x10", different[1]["reason"])
        source_index = arrays(self.dir / "out.h5")["source_index"]
        self.assertEqual([source_index[d["row"]] for d in different], [3, 20])
        result = self.run_h5pack("verify", "out.h5", "--against", "photos", "--quiet", "--sample", "all")
        self.assertIn("28 of 30 images equal their source", result.stdout)
        self.assertIn("differs from its source", result.stderr)

    def test_a_sample(self):
        self.h5pack("folder", "photos", "-o", "out.h5")
        for asked, compared in (("1", 1), ("7", 7), ("30", 30), ("500", 30), ("all", 30)):
            report = self.verify("out.h5", "--against", "photos", "--sample", asked)
            self.assertEqual(report["source"]["compared"], compared)
        (self.dir / "photos").rename(self.dir / "moved")
        self.assertEqual(self.verify("out.h5", "--against", "moved")["source"]["different"], [])

    def test_repacked_files_and_other_sources(self):
        sources.write_cifar10(self.dir / "cifar", per_batch=4)
        self.h5pack("cifar", "cifar", "-o", "packed")
        self.h5pack("repack", "packed/train.h5", "-o", "out.h5", "--order", "shuffled", "--out-layout", "nchw",
                    "--rows", "3:17")
        for name, compared in (("packed/train.h5", 20), ("packed/test.h5", 4), ("out.h5", 14)):
            report = self.verify(name, "--against", "cifar", "--sample", "all")
            self.assertEqual(report["source"], {"compared": compared, "different": []})

    def test_what_cannot_be_compared(self):
        self.h5pack("folder", "photos", "-o", "out.h5")
        self.write_h5("foreign.h5", images=picture(1, 8, 8)[None])
        self.assert_refused(["verify", "foreign.h5", "--against", "photos"], 1, ["'foreign.h5'"],
                            "does not say what it was packed from")
        self.assert_refused(["verify", "out.h5", "--against", "nowhere"], 1, ["nowhere"], "give a folder")


@under_strace.required
class StopTest(CliTest):
    def test_a_signal_ends_it(self):
        self.pack_photos(output="out.h5")
        result, calls = self.traced(["-e", "inject=preadv2:signal=INT:when=9"], "verify", "out.h5", "--trust")
        self.assertIn("SIGINT", calls)
        self.assertEqual((result.returncode, result.stdout), (130, ""), result.stderr)
        self.assertRegex(result.stderr, r"stopped.*; nothing was changed")


class FlippedBitTest(CliTest):
    """One bit of a file is flipped: verify finds it, or nothing that anybody reads has changed."""

    FLIPS = int(os.environ.get("CHUNKIO_TEST_ROUNDS", 60))

    @staticmethod
    def raw_data(path):
        """Where the values of each dataset lie: bytes [begin, end)."""
        ranges = {}
        with h5py.File(path) as file:
            for name, dataset in file.items():
                if dataset.chunks:
                    chunks = [dataset.id.get_chunk_info(i) for i in range(dataset.id.get_num_chunks())]
                    ranges[name] = [(chunk.byte_offset, chunk.byte_offset + chunk.size) for chunk in chunks]
                else:
                    ranges[name] = [(dataset.id.get_offset(), dataset.id.get_offset() + dataset.id.get_storage_size())]
        return ranges

    def test_each_is_found_or_harmless(self):
        self.write_h5("in.h5", images=np.stack([picture(i, 6, 5) for i in range(24)]), labels=np.arange(24) % 3,
                      boxes=np.arange(96, dtype=np.float32).reshape(24, 4))
        for options in ([], ["--filter", "deflate:1"]):
            self.h5pack("repack", "in.h5", "-o", "x.h5", "--chunk", 5, "--force", *options)
            whole = (self.dir / "x.h5").read_bytes()
            expected = contents(self.dir / "x.h5")
            places = self.raw_data(self.dir / "x.h5")
            raw = sorted(sum(places.values(), []))
            places[""] = list(zip([0, *(end for _, end in raw)], [*(begin for begin, _ in raw), len(whole)]))
            chosen = random.Random(len(options))
            for number in range(self.FLIPS // 2):
                # Half of them in what libhdf5 keeps, else as many in the small datasets as in the large ones.
                name = "" if number % 2 else chosen.choice(sorted(places))
                at = chosen.choice([at for begin, end in places[name] for at in range(begin, end)])
                bit = chosen.randrange(8)
                with self.subTest(options=options, dataset=name, at=at, bit=bit):
                    (self.dir / "x.h5").write_bytes(whole)
                    flip(self.dir / "x.h5", at, 1 << bit)
                    result = self.run_h5pack("verify", "x.h5", "--quiet")
                    self.assertIn(result.returncode, (0, 1, 4), result.stderr)
                    self.assertLessEqual(len(result.stderr.splitlines()), 1, result.stderr)
                    self.assertIn("x.h5", result.stderr + result.stdout)
                    if result.returncode == 0:
                        assert_contents(self, self.dir / "x.h5", expected)
