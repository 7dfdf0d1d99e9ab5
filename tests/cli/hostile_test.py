"""Files from strangers: what they point to is never opened, no code of them runs, and damage never becomes
pixels. `info` and `stream` are the ways in."""

import os
import random
import re
import resource
import shutil
import subprocess
import time
import unittest
import zlib

import h5py
import numpy as np

import under_strace
from support import CliTest, damaged_heaps, flip, make_class_folder

PLUGIN = r"""
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void ran(void) {
  FILE *file = fopen(getenv("H5PACK_TEST_MARK"), "w");
  if (file) fclose(file);
}
int H5PLget_plugin_type(void) { return 0; }
const void *H5PLget_plugin_info(void) { return 0; }
"""


def pictures(n=40, height=8, width=8):
    return np.random.default_rng(n).integers(0, 256, (n, height, width, 3), dtype=np.uint8)


class HostileFileTest(CliTest):
    def reads(self, file, *options):
        """The commands that read a file."""
        return [["info", file, *options], ["stream", file, *options]]

    def refuse(self, code, names, way_out, file="x.h5"):
        for command in self.reads(file):
            self.assert_refused(command, code, [file, *names], way_out)

    def pixel_digest(self, *arguments):
        return self.h5pack_json("stream", *arguments, "--digest")[0]["pixel_digest"]

    # ---- What a file points to ----

    def lead_elsewhere(self, way):
        """x.h5, whose images are in `secret` or `secret.h5`; returns their path."""
        self.write_h5("secret.h5", pictures=pictures())
        (self.dir / "secret").write_bytes(b"TOP SECRET " * 1000)
        with h5py.File(self.dir / "x.h5", "w", libver="earliest") as file:
            if way == "external storage":
                file.create_dataset("images", (40, 8, 8, 3), np.uint8, external=[(str(self.dir / "secret"), 0, 7680)])
            elif way == "virtual dataset":
                layout = h5py.VirtualLayout((40, 8, 8, 3), np.uint8)
                layout[:] = h5py.VirtualSource("secret.h5", "pictures", (40, 8, 8, 3))
                file.create_virtual_dataset("images", layout)
            elif way == "external link of a group":
                file["group"] = h5py.ExternalLink("secret.h5", "/")
            else:
                file["images"] = h5py.ExternalLink("secret.h5", "/pictures")
        if way == "user-defined link":
            content = (self.dir / "x.h5").read_bytes()
            # Version 1 of a link message, with a type (64: external), the length of the name and the name.
            external = b"\x01\x08\x40\x06images"
            self.assertEqual(content.count(external), 1)
            (self.dir / "x.h5").write_bytes(content.replace(external, b"\x01\x08\x46\x06images"))
        return "group/pictures" if way == "external link of a group" else "images"

    @under_strace.required
    def test_what_lies_elsewhere_is_never_opened(self):
        for way, said in (("external storage", "external storage"), ("external link", "external link"),
                          ("external link of a group", "external link"), ("virtual dataset", "virtual dataset"),
                          ("user-defined link", "user-defined link")):
            path = self.lead_elsewhere(way)
            own = way == "user-defined link"
            for command in self.reads("x.h5", "--images", path):
                with self.subTest(way, command=command[0]):
                    self.assert_refused(command, 1, ["x.h5", said],
                                        r"copy it all into one file" if own else r"allow-external")
                    if own:  # nothing opens those
                        self.assert_refused([*command, "--allow-external"], 1, ["x.h5"], r"\w")
                    _, calls = self.traced(["-e", "trace=open,openat"], *command)
                    opened = re.findall(r'open(?:at)?\([^"]*"([^"]*)"', calls)
                    self.assertIn("x.h5", opened)
                    self.assertFalse([name for name in opened if "secret" in name])

    def test_a_virtual_dataset_within_the_file_is_not_followed_either(self):
        with h5py.File(self.dir / "x.h5", "w") as file:
            file["pictures"] = pictures()
            layout = h5py.VirtualLayout((40, 8, 8, 3), np.uint8)
            layout[:] = h5py.VirtualSource(".", "pictures", (40, 8, 8, 3))
            file.create_virtual_dataset("images", layout)
        self.refuse(1, ["virtual dataset"], r"allow-external")
        self.write_h5("plain.h5", images=pictures())
        self.assertEqual(self.pixel_digest("x.h5", "--allow-external"), self.pixel_digest("plain.h5"))

    # ---- Code ----

    def test_a_filter_plugin_does_not_run(self):
        compiler = shutil.which("cc") or shutil.which("gcc")
        (self.dir / "plugin.c").write_text(PLUGIN)
        plugins = self.dir / "plugins"
        plugins.mkdir()
        subprocess.run([compiler, "-shared", "-fPIC", "-o", plugins / "libevil.so", self.dir / "plugin.c"], check=True)
        with h5py.File(self.dir / "x.h5", "w") as file:
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            creation.set_chunk((10, 8, 8, 3))
            creation.set_filter(32008, h5py.h5z.FLAG_OPTIONAL, (1, 2))
            data = h5py.h5d.create(file.id, b"images", h5py.h5t.STD_U8LE,
                                   h5py.h5s.create_simple((40, 8, 8, 3)), creation)
            h5py.Dataset(data).id.write_direct_chunk((0, 0, 0, 0), b"?" * 100)
        mark = self.dir / "mark"
        environment = {"HDF5_PLUGIN_PATH": str(plugins), "H5PACK_TEST_MARK": str(mark)}
        for command in self.reads("x.h5"):
            self.assert_fails(command, "filter 32008", environment=environment)
        self.assertFalse(mark.exists(), "the plugin ran")
        # The plugin is one that would: libhdf5 itself loads it.
        subprocess.run(["/usr/bin/python3", "-c", "import h5py; h5py.File('x.h5')['images'][:1]"],
                       cwd=self.dir, env={**os.environ, **environment}, capture_output=True)
        self.assertTrue(mark.exists(), "the test's plugin cannot run at all")

    # ---- Shapes and types ----

    def test_types_that_are_no_pictures(self):
        n = (40, 8, 8, 3)
        for name, data in {"compound": np.zeros(n, [("a", "u1"), ("b", "u1")]),
                           "any_length": {"shape": n, "dtype": h5py.vlen_dtype(np.uint8)}}.items():
            with self.subTest(name):
                self.write_h5("x.h5", images=data)
                self.refuse(1, ["images"], "holds no images")
        # Other numbers stream as they are; what needs images refuses them.
        for name, data in {"int8": np.zeros(n, np.int8), "uint16": np.zeros(n, np.uint16),
                           "float32": np.zeros(n, np.float32), "rank": np.zeros((40, 192), np.uint8),
                           "big_endian": np.zeros(n, ">u2")}.items():
            with self.subTest(name):
                self.write_h5("x.h5", images=data)
                self.h5pack("stream", "x.h5")
                self.assert_refused(["preview", "x.h5", "-o", "x.png"], 1, ["x.h5", "images"], "uint8")

    def test_chunks_larger_than_the_dataset(self):
        self.write_h5("x.h5", images={"data": pictures(5), "chunks": (64, 16, 16, 4), "maxshape": (None,) * 4,
                                      "compression": "gzip"})
        self.write_h5("plain.h5", images=pictures(5))
        self.assertEqual(self.pixel_digest("x.h5"), self.pixel_digest("plain.h5"))

    # ---- Compressed data ----

    def forge(self, name, chunk):
        """Images, labels and a field, deflated; the one chunk of `name` becomes `chunk`."""
        arrays = {"images": pictures(), "labels": np.arange(40), "masks": np.arange(80.0).reshape(40, 2)}
        self.write_h5("x.h5", **{key: {"data": data, "chunks": data.shape, "compression": "gzip"}
                                 for key, data in arrays.items()})
        with h5py.File(self.dir / "x.h5", "r+") as file:
            file[name].id.write_direct_chunk((0,) * file[name].ndim, chunk)
        return arrays[name].nbytes

    @unittest.skipIf(os.environ.get("CHUNKIO_SANITIZE"), "sanitizers reserve more than the limit")
    def test_a_deflate_bomb_takes_no_memory(self):
        bomb = zlib.compress(bytes(1 << 28), 9)
        for source, mebibytes, bombed in (("direct", 400, "images"), ("hdf5", 200, "images"), ("hdf5", 200, "labels"),
                                          ("hdf5", 200, "masks")):
            with self.subTest(bombed, source=source):
                limit = (mebibytes << 20, mebibytes << 20)
                raw_bytes = self.forge(bombed, bomb)
                result = self.assert_fails(
                    ["stream", "x.h5", "--window-bytes", "1MiB", "--memory-budget", "64MiB", "--threads", "2",
                     "--source", source, "--fields", "masks"],
                    rf"rows 0 to 39\) of {bombed} in .*x\.h5 is damaged: .* more than its {raw_bytes}",
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, limit))
                self.assertNotIn("images/s", result.stdout)

    def write_labels(self, rows, ours, labels):
        """Images of which none is stored, and what labels(file, rows) adds; of this format if `ours`."""
        with h5py.File(self.dir / "x.h5", "w", libver=("earliest", "v110")) as file:
            images = file.create_dataset("images", (rows, 1, 1, 1), np.uint8, chunks=(2**20, 1, 1, 1),
                                         compression="gzip")
            images.attrs["layout"] = np.bytes_("nhwc")
            if ours:
                file.attrs["chunkio_format"] = np.int64(1)
                images.attrs["class_names"] = np.array([b"cat", b"dog"])
            labels(file, rows)

    def test_labels_that_a_small_file_only_claims_to_hold(self):
        def none_stored(file, rows):
            file.create_dataset("labels", (rows,), np.int64, chunks=(2**16,), compression="gzip")

        def one_chunk_of_zeros(file, rows):
            # The file says that it is a hundredth of what it claims to decode to.
            labels = file.create_dataset("labels", (rows,), np.int64, chunks=(2**25,), compression="gzip")
            labels[0] = 1

        for labels in none_stored, one_chunk_of_zeros:
            with self.subTest(labels.__name__):
                self.write_labels(2**36, True, labels)
                began = time.monotonic()
                self.assert_refused(["info", "x.h5"], 1, ["x.h5: labels lacks some of its"], "write the file again")
                self.assertLess(time.monotonic() - began, 10, "it read what is not there")

    def test_more_labels_than_a_file_of_that_size_has_images(self):
        """They can be read, and would be for minutes."""
        def deflated(dtype):
            def write(file, rows):
                labels = file.create_dataset("labels", (rows,), dtype, chunks=(2**25,), compression="gzip")
                zeros = zlib.compress(bytes(2**25 * labels.dtype.itemsize), 9)
                for row in range(0, rows, 2**25):
                    labels.id.write_direct_chunk((row,), zeros)
            return write

        def virtual(file, rows):
            file["one"] = np.zeros(1, np.int64)
            layout = h5py.VirtualLayout((rows,), np.int64)
            layout[:1] = h5py.VirtualSource(".", "one", (1,))
            file.create_virtual_dataset("labels", layout)

        for rows, labels in (2**31, deflated(np.int64)), (2**31, deflated(np.uint8)), (2**36, virtual):
            with self.subTest(rows=rows, labels=labels.__name__):
                self.write_labels(rows, True, labels)
                file_bytes = (self.dir / "x.h5").stat().st_size
                self.assertLess(file_bytes, 20 << 20)
                began = time.monotonic()
                self.assert_refused(["info", "x.h5", "--allow-external"], 1,
                                    [f"x.h5: labels has {rows} rows, the file only {file_bytes} bytes"],
                                    "write the file again")
                # A file of another format is opened without a look at labels.
                self.write_labels(rows, False, labels)
                info, = self.h5pack_json("info", "x.h5", "--allow-external", "--layout", "nhwc")
                self.assertEqual(info["classes"], [])
                self.assertIn("too many labels to look at", " ".join(info["advice"]))
                self.assertLess(time.monotonic() - began, 10, "it read them")

    def test_a_chunk_that_decodes_to_another_size(self):
        for name, source in (("images", "auto"), ("images", "hdf5"), ("labels", "hdf5"), ("masks", "hdf5")):
            raw_bytes = self.forge(name, zlib.compress(bytes(1)))
            for size in (0, 1, raw_bytes - 1, raw_bytes + 1):
                with self.subTest(name=name, source=source, size=size):
                    self.forge(name, zlib.compress(bytes(size)))
                    # stream has said what it reads before it meets the damage. The probe meets it in libhdf5, which
                    # reads beyond what was decoded: sanitizers end it then.
                    result = self.assert_fails(["stream", "x.h5", "--trust", "--source", source, "--fields", "masks"],
                                               rf"rows 0 to 39\) of {name} in .*x\.h5.*copy or download")
                    self.assertNotIn("images/s", result.stdout)
        self.forge("labels", zlib.compress(bytes(319)))
        self.assert_fails(["stream", "x.h5", "--trust", "--labels", "3"], r"x\.h5.*copy or download")

    # ---- Files somebody else has open, or had when it died ----

    def test_a_file_whose_writer_is_at_work_or_died_says_so(self):
        with h5py.File(self.dir / "x.h5", "w", libver="latest") as file:
            file["images"] = pictures()
            file.flush()
            shutil.copy(self.dir / "x.h5", self.dir / "dead.h5")
            for command in self.reads("x.h5"):
                self.assert_fails(command, r"x\.h5.*(open for writing|still being written)")
        self.refuse(1, [], r"still being written, or its writer died", file="dead.h5")

    # ---- Files that libhdf5 itself does not survive ----

    def test_a_file_that_libhdf5_crashes_on_is_an_error(self):
        refused = 0
        for _ in damaged_heaps(self.dir / "x.h5"):
            for command in (["info", "x.h5"], ["stream", "x.h5", "--quiet"]):
                result = self.run_h5pack(*command)
                self.assertIn(result.returncode, (0, 1), result.stderr)
                self.assertNotIn("install it again", result.stderr)
                refused += "damaged or hostile" in result.stderr
        if self.libhdf5_is_old():
            self.assertGreater(refused, 0)

    def test_a_file_that_no_libhdf5_returns_from(self):
        """Up to 2.2, it goes on behind free space of a heap by the size that this claims to have."""
        with h5py.File(self.dir / "x.h5", "w") as file:
            layout = h5py.VirtualLayout((40, 8, 8, 3), np.uint8)
            layout[:] = h5py.VirtualSource("other.h5", "images", (40, 8, 8, 3))
            file.create_virtual_dataset("images", layout)
        content = bytearray((self.dir / "x.h5").read_bytes())
        at = content.index(b"GCOL") + 16
        while index := int.from_bytes(content[at:at + 2], "little"):
            at += 16 + -(-int.from_bytes(content[at + 8:at + 16], "little") // 8) * 8
        self.assertEqual(index, 0, "free space")
        content[at + 8:at + 16] = bytes(8)
        (self.dir / "x.h5").write_bytes(content)
        self.assert_fails(["info", "x.h5"], r"x\.h5 is damaged or hostile.*did not end within 10 s")

    def test_an_index_of_many_chunks_with_a_node_that_leads_to_itself(self):
        """Also where no chunk is in that node, so that the library need not read it: libhdf5 does."""
        self.write_h5("sound.h5", images={"data": pictures(6000, 4, 4), "chunks": (1, 4, 4, 3)})
        key, entry = 8 + 8 * 5, 8 + 8 * 5 + 8
        sound = (self.dir / "sound.h5").read_bytes()
        node = sound.index(b"TREE\x01\x01") + 24
        first, second = node, node + entry
        for covers_chunks in (True, False):
            content = bytearray(sound)
            content[first + key:second] = (node - 24).to_bytes(8, "little")
            if not covers_chunks:
                content[second:second + key] = content[first:first + key]
            (self.dir / "x.h5").write_bytes(content)
            result = self.run_h5pack("info", "x.h5", "--layout", "nhwc")
            with self.subTest(covers_chunks=covers_chunks):
                self.assertIn(result.returncode, (0, 1), result.stderr)
                if self.libhdf5_is_old():
                    self.assertRegex(result.stderr, r"x\.h5 is damaged or hostile")
        self.h5pack("info", "sound.h5", "--layout", "nhwc")

    @under_strace.required
    def test_a_file_that_is_trusted_is_opened_at_once(self):
        self.write_h5("x.h5", images=pictures())
        for options, processes in (([], 1), (["--trust"], 0)):
            _, calls = self.traced(["-e", "trace=execve"], "info", "x.h5", *options)
            self.assertEqual(calls.count("chunkio-probe"), processes)

    def test_damaged_mappings_of_a_link_are_never_decoded(self):
        """libhdf5 1.10 crashes over some 5 % of these."""
        make_class_folder(self.dir / "photos", ["cat", "dog"], 6)
        for i in range(2):
            self.h5pack("folder", "photos", "-o", "train.h5", "--chunk", 3, "--shard", f"{i}/2", "--quiet")
        self.h5pack("link", "train-*-of-00002.h5", "-o", "x.h5")
        whole = (self.dir / "x.h5").read_bytes()
        begin = whole.index(b"GCOL")
        heap = range(begin, begin + int.from_bytes(whole[begin + 8:begin + 16], "little"))
        # The rest of the heap is free space.
        used = [at for at in heap if whole[at]]
        commands = (["info", "x.h5"], ["stream", "x.h5", "--allow-external"], ["verify", "x.h5", "--allow-external"],
                    ["repack", "x.h5", "-o", "new.h5", "--allow-external"], ["export", "x.h5", "-o", "new"],
                    ["append", "x.h5", "folder", "photos", "-o", "new.h5"], ["preview", "x.h5", "-o", "new.png"])
        chosen = random.Random(0)
        for number in range(300):
            at, bit = chosen.choice(used), chosen.randrange(8)
            (self.dir / "x.h5").write_bytes(whole)
            flip(self.dir / "x.h5", at, 1 << bit)
            with self.subTest(at=at - begin, bit=bit):
                command = commands[number % len(commands)]
                self.assert_refused([*command, "--quiet"], 1, ["x.h5"], r"open 'train-\*-of-00002\.h5' instead")
