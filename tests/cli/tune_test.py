"""h5pack tune: sources and files of all kinds, its lines pasted, disks assumed, named and measured."""

import os
import pathlib
import re
import resource
import shlex
import signal
import time
import unittest

import h5py
import numpy as np

from sources import write_celeba, write_cifar10
from support import CliTest, arrays, make_class_folder

MACHINE = ["--threads", 2, "--page-cache", "8GiB"]


class TuneTest(CliTest):
    def tune(self, *arguments):
        return self.h5pack_json("tune", *arguments, *MACHINE)[0]

    def foreign_file(self, name, chunks, count=600, **options):
        """A file as h5py users make them, 64x64x3."""
        self.write_h5(name, images={"data": np.random.default_rng(1).integers(0, 8, (count, 64, 64, 3), np.uint8),
                                    "chunks": chunks, **options})
        return name

    def file_of_holes(self, name, shape, **chunks):
        """Datasets of so many zeros that a disk is slow at them, which take no space. Chunks, or None, of each."""
        with h5py.File(self.dir / name, "w") as file:
            for dataset, chunk in chunks.items():
                creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
                creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
                if chunk:
                    creation.set_chunk(chunk)
                h5py.h5d.create(file.id, dataset.encode(), h5py.h5t.STD_U8LE, h5py.h5s.create_simple(shape), creation)
        return name

    def test_encoded_images(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 60)
        self.h5pack("folder", "photos", "-o", "a.h5", "--store", "encoded")
        self.assert_refused(["tune", "a.h5"], 2, ["a.h5"], "--decode")
        # A thousand bytes or so become 786,432, which a hard disk has to bring.
        report = self.tune("a.h5", "--decode", "512", "--crop", "whole", "--disk", "hdd")
        stored, packed = (report[name]["first_epoch"] for name in ("as_stored", "packed"))
        self.assertEqual(report["source"]["height"], 512)
        if not os.environ.get("CHUNKIO_SANITIZE"):  # sanitizers slow down decoding, and no disk
            self.assertGreater(stored["images_per_second"], packed["images_per_second"])
            self.assertFalse(report["pack"])
        self.assertGreater(report["machine"]["decode_bytes_per_second"], 1e6)
        self.assertNotEqual(report["machine"]["decode_bytes_per_second"], 0.35e9, "measured")
        self.assertIn("chunkio.Decode(512, crop=\"whole\")", report["commands"]["python"])
        self.assertIn(".crop = chunkio::CropMode::whole", report["commands"]["cpp"])
        self.assertIsNone(report["commands"]["h5py"])
        # From a fast disk pixels come as fast as they can be copied.
        report = self.tune("a.h5", "--decode", "32x24", "--disk", "nvme")
        stored, packed = (report[name]["first_epoch"] for name in ("as_stored", "packed"))
        self.assertEqual(stored["bottleneck"], "decode")
        self.assertGreater(packed["images_per_second"], stored["images_per_second"])
        self.assertEqual(report["as_stored"]["resident"], "host")
        # Which a random part of each image cannot be.
        report = self.tune("a.h5", "--decode", "32x24", "--crop", "random-resized", "--disk", "nvme")
        self.assertEqual(report["as_stored"]["resident"], "none")
        self.assertFalse(report["pack"])
        self.assertIn("another one each epoch", " ".join(report["notes"]))
        self.assertIn("encoded", self.h5pack("tune", "a.h5", "--decode", "32"))

    def test_a_folder(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 10)
        report = self.tune("photos", "--disk", "nvme", "--step-ms", 12)
        self.assertEqual(report["source"]["kind"], "folder")
        self.assertEqual((report["source"]["num_samples"], report["source"]["height"]), (20, 32))
        self.assertEqual(report["disk"], {"origin": "profile", "profile": "nvme", "bytes_per_second": 3.5e9,
                                          "request_seconds": 53e-6, "queue_depth": 32})
        self.assertTrue(report["pack"])
        self.assertIsNone(report["as_stored"])
        self.assertEqual(report["advice"]["chunk_samples"], 20)
        self.assertEqual(report["advice"]["first_epoch"]["bottleneck"], "consumer")
        text = self.h5pack("tune", "photos", "--disk", "nvme", "--step-ms", 12, *MACHINE)
        for part in ("20 images of 32x32x3", "nvme: 3500 MB/s", "970 EVO", "no stall",
                     "h5pack folder photos -o train.h5", "rdcc_nbytes=", "chunkio::Loader loader("):
            self.assertIn(part, text)

    def test_other_kinds_of_sources(self):
        write_cifar10(self.dir / "cifar")
        write_celeba(self.dir / "celeba", 12)
        make_class_folder(self.dir / "photos", ["cat"], 4)
        (self.dir / "list.csv").write_text("path,label\n" + "".join(f"photos/cat/00{i}.jpg,cat\n" for i in range(3)))
        for name, kind in (("cifar", "cifar"), ("celeba", "celeba"), ("list.csv", "csv")):
            with self.subTest(kind):
                report = self.tune(name)
                self.assertEqual(report["source"]["kind"], kind)
                self.assertIn(f"h5pack {kind} {name} -o ", report["commands"]["h5pack"])
        self.assertEqual(self.tune("cifar")["source"]["split"], "train")
        # What is not said is assumed.
        self.assertEqual(report["disk"]["origin"], "assumed")
        self.assertRegex(self.h5pack("tune", "photos"), r"assumed[\s\S]*--measure")
        # Sizes are those after resizing.
        report = self.tune("photos", "--resize", "16x24", "--channels", "gray")
        source = report["source"]
        self.assertEqual((source["height"], source["width"], source["channels"]), (16, 24, 1))
        self.assertIn(" --resize 16x24 --channels gray", report["commands"]["h5pack"])

    def test_pictures_that_are_yet_to_come(self):
        report = self.tune("200000x218x178x3", "--disk", "hdd", "--batch", 256, "--step-ms", 12)
        self.assertEqual(report["source"]["kind"], "planned")
        self.assertGreater(report["advice"]["chunk_bytes"], 31 << 20)
        later = report["advice"]["later_epochs"]
        self.assertEqual(later["bottleneck"], "disk")
        self.assertEqual(later["echo"], int(np.ceil(256 / 0.012 / later["images_per_second"])))
        self.assertAlmostEqual(later["stall"], 1 - later["images_per_second"] * 0.012 / 256)
        self.assertRegex(report["commands"]["h5pack"], r"^h5pack folder DIR -o train.h5 --chunk \d+$")
        self.assertIn("-o train.h5 --channels gray --chunk", self.tune("10x28x28x1")["commands"]["h5pack"])
        self.assertIn("-o train.h5 --resize 40 --center-crop 32x32 --chunk",
                      self.tune("10x32x32x3", "--resize", 40, "--center-crop", "32x32")["commands"]["h5pack"])
        of_four = self.tune("10x32x32x4")
        self.assertIsNone(of_four["commands"]["h5pack"])
        self.assertIn("1 or 3 channels", " ".join(of_four["notes"]))

    def test_every_line_can_be_pasted(self):
        make_class_folder(self.dir / "my photos", ["cat", "dog"], 8)
        report = self.tune("my photos", "--batch", 4, "--memory-budget", "256MiB")
        commands = report["commands"]
        line = shlex.split(commands["h5pack"])
        self.assertEqual(line[0], "h5pack")
        self.h5pack(*line[1:])
        with h5py.File(self.dir / "train.h5") as file:
            self.assertEqual(file["images"].chunks[0], report["advice"]["chunk_samples"])
        expression = commands["h5py"].replace('"train.h5"', repr(str(self.dir / "train.h5")))
        with eval(expression) as file:  # our own output, that is the point
            self.assertEqual(file["images"].shape, (16, 32, 32, 3))
        # The C++ line, as the options of h5pack stream have it.
        options = dict(re.findall(r"\.(\w+) = ([\w:]+)", commands["cpp"]))
        options["memory_budget"] = options.pop("budget")
        self.assertEqual(int(options["window_bytes"]), report["advice"]["window_bytes"])
        self.h5pack("stream", "train.h5", "--batch", options["batch_size"], "--window-bytes",
                    options["window_bytes"], "--threads", options["num_threads"], "--prefetch",
                    options["prefetch_depth"], "--memory-budget", options["memory_budget"], "--resident",
                    options["resident"].split(":")[-1], "--epochs", 2)
        # The line of Python says the same.
        path, keywords = self.python_line(commands["python"])
        self.assertEqual(path, (["train.h5"], {}))
        self.assertEqual({name: str(value) for name, value in keywords.items()},
                         {name: value.split(":")[-1] for name, value in options.items()})

    def python_line(self, line):
        """What Dataset and Loader are called with."""
        class Chunkio:
            @staticmethod
            def Dataset(*given, **options):
                return list(given), options

            @staticmethod
            def Loader(dataset, **options):
                return dataset, options

        scope = {"chunkio": Chunkio}
        exec(line, scope)  # our own output
        return scope["loader"]

    def test_lines_have_the_options_that_were_given(self):
        make_class_folder(self.dir / "pics" / "of", ["cat", "dog"], 4)
        names = sorted(str(path.relative_to(self.dir / "pics")) for path in (self.dir / "pics").rglob("*.jpg"))
        rows = "".join(f"{i},k,{name}\n" for i, name in enumerate(names))
        (self.dir / "l.csv").write_text("number,kind,file\n" + rows)
        csv = ["l.csv", "--path-column", "file", "--label-column", "kind", "--root", "pics"]
        line = shlex.split(self.tune(*csv, "--resize", 16)["commands"]["h5pack"])
        self.h5pack(*line[1:])
        made = arrays(self.dir / "train.h5")
        self.assertEqual((made["images"].shape, made["labels"].shape), ((8, 16, 16, 3), (8,)))

        def write_two(name, chunk):
            self.file_of_holes(name, (30_000, 3, 64, 64), **{"a b": (chunk, 3, 64, 64), "b": None})
        opened = ["--images", "a b", "--layout", "nchw"]
        write_two("two.h5", 86)
        report = self.tune("two.h5", *opened, "--allow-external", "--disk", "hdd")
        self.assertTrue(report["pack"])
        self.assertIn("--allow-external", report["commands"]["h5pack"])
        self.assertIn('Dataset::open("two-tuned.h5"), ', report["commands"]["cpp"])
        self.h5pack(*shlex.split(report["commands"]["h5pack"])[1:])
        self.assertEqual(self.tune("two-tuned.h5")["source"]["height"], 64)

        write_two("good.h5", 1000)
        report = self.tune("good.h5", *opened)
        self.assertFalse(report["pack"])
        self.assertIn('Dataset::open("good.h5", {.images = "a b", .layout = chunkio::Layout::nchw}), {.batch_size',
                      report["commands"]["cpp"])
        path, _ = self.python_line(report["commands"]["python"])
        self.assertEqual(path, (["good.h5"], {"images": "a b", "layout": "nchw"}))
        report = self.tune("good.h5", "--images", "b", "--layout", "nhwc", "--allow-external")
        path, _ = self.python_line(report["commands"]["python"])
        self.assertEqual(path, (["good.h5"], {"images": "b", "layout": "nhwc", "allow_external": True}))
        self.assertIn('{.images = "b", .layout = chunkio::Layout::nhwc, .allow_external = true}',
                      report["commands"]["cpp"])

    def test_the_h5py_line_says_what_order_it_is_for(self):
        self.foreign_file("file.h5", (50, 64, 64, 3))
        for command in ("tune", "info"):
            self.assertRegex(self.h5pack(command, "file.h5"), r"rdcc_w0=1.*\n.*random order.*rdcc_w0=0.75")

    def test_a_good_file_is_kept(self):
        self.pack_photos(per_class=10)
        report = self.tune("photos.h5", "--disk", "sata-ssd")
        self.assertAlmostEqual(report["h5py"]["chunk_order_recommended_cache"]["hit_rate"], 0.95)
        self.assertEqual(report["h5py"]["random_order_default_cache"].keys(), {"hit_rate", "read_amplification"})
        self.assertFalse(report["pack"])
        self.assertIsNone(report["commands"]["h5pack"])
        self.assertIn('"photos.h5"', report["commands"]["cpp"])
        self.assertEqual(report["advice"], report["as_stored"])
        text = " ".join(self.h5pack("tune", "photos.h5", *MACHINE).split())
        self.assertIn("keep it", text)
        # Both figures, and the rule.
        self.assertRegex(text, r"epoch takes \S+ s as the file is, \S+ s packed again, which is advised where it saves")
        text = " ".join(self.h5pack("tune", "photos.h5", "--step-ms", 0.01, *MACHINE).split())
        self.assertRegex(text, r"as the file is \(stall \S+ %\), \S+ s packed again \(stall \S+ %\), which is advised")
        self.foreign_file("plain.h5", None)
        report = self.tune("plain.h5", "--disk", "sata-ssd")
        self.assertFalse(report["pack"])
        self.assertIsNone(report["h5py"]["random_order_default_cache"])
        self.assertIsNone(report["commands"]["h5py"])
        self.assertIn("not chunked", " ".join(report["notes"]))

    def test_chunks_of_a_mebibyte_on_a_disk_with_seeks_are_packed_again(self):
        self.file_of_holes("small.h5", (30_000, 64, 64, 3), images=(86, 64, 64, 3))
        report = self.tune("small.h5", "--disk", "hdd", "--step-ms", 10)
        self.assertTrue(report["pack"])
        self.assertGreater(report["packed"]["first_epoch"]["images_per_second"],
                           1.5 * report["as_stored"]["first_epoch"]["images_per_second"])
        self.assertEqual(report["as_stored"]["first_epoch"]["bottleneck"], "disk")
        self.assertGreater(report["as_stored"]["first_epoch"]["echo"], 1)
        self.h5pack(*shlex.split(report["commands"]["h5pack"])[1:])
        again = self.tune("small-tuned.h5", "--disk", "hdd", "--step-ms", 10)
        self.assertFalse(again["pack"])
        # Smaller ones are read many at a time.
        self.file_of_holes("smaller.h5", (30_000, 64, 64, 3), images=(1, 64, 64, 3))
        self.assertFalse(self.tune("smaller.h5", "--disk", "hdd", "--step-ms", 10)["pack"])

    def test_echo_is_proposed_where_storage_limits_and_up_to_eight_uses(self):
        self.foreign_file("deflate.h5", (50, 64, 64, 3), compression="gzip", compression_opts=1)
        planned = ("200000x218x178x3", "--disk", "hdd", "--batch", 256, "--step-ms")
        for arguments, bottleneck, uses, wanted in (
                ((*planned, 100), "disk", range(2, 9), "{}: each image would have to be used so often"),
                ((*planned, 1), "disk", range(9, 10**6), "not proposed: .* each image would have to be used {} times"),
                (("deflate.h5", "--disk", "nvme", "--step-ms", 0.01), None, range(2, 10**6),
                 "not proposed: \\w+ limits, not storage"),
                ((*planned, 100_000), "consumer", range(1, 2), "not needed")):
            with self.subTest(wanted):
                report = self.tune(*arguments)
                later = report["advice"]["later_epochs"]
                if bottleneck is None:
                    self.assertNotEqual(later["bottleneck"], "disk")
                else:
                    self.assertEqual(later["bottleneck"], bottleneck)
                self.assertIn(later["echo"], uses)
                text = " ".join(self.h5pack("tune", *arguments, *MACHINE).split())
                self.assertRegex(text, " echo " + wanted.format(later["echo"]))

    def test_shards_are_packed_again_into_one_file(self):
        for path, _ in make_class_folder(self.dir / "photos", ["cat", "dog"], 10, 256, 256):
            for copy in range(69):
                os.link(path, f"{path[:-4]}_{copy}.jpg")
        for part in range(2):
            self.h5pack("folder", "photos", "-o", "t.h5", "--shard", f"{part}/2", "--chunk", 6)
        report = self.tune("t-*-of-00002.h5", "--disk", "hdd")
        self.assertTrue(report["pack"])
        self.assertEqual(report["source"]["num_samples"], 1400)
        self.assertIn("h5pack link", " ".join(self.tune("t-*-of-00002.h5", "--disk", "nvme")["notes"]))
        self.h5pack(*shlex.split(report["commands"]["h5pack"])[1:])
        self.assertEqual(arrays(self.dir / "t-tuned.h5")["images"].shape, (1400, 256, 256, 3))

    def test_measuring_a_file(self):
        self.foreign_file("file.h5", (50, 64, 64, 3), compression="gzip", compression_opts=1)
        before = (self.dir / "file.h5").stat()
        start = time.monotonic()
        report = self.tune("file.h5", "--measure")
        self.assertGreater(time.monotonic() - start, 1.8)
        disk = report["disk"]
        self.assertEqual(disk["origin"], "measured")
        self.assertGreater(disk["bytes_per_second"], 1e6)
        self.assertGreater(disk["request_seconds"], 0)
        self.assertGreaterEqual(disk["queue_depth"], 1)
        self.assertNotEqual(report["machine"]["decode_bytes_per_second"], 0.35e9)
        self.assertEqual(report["notes"][1:], ["labels: none"])
        after = (self.dir / "file.h5").stat()
        self.assertEqual((before.st_mtime_ns, before.st_size), (after.st_mtime_ns, after.st_size))

    @unittest.skipIf(os.environ.get("CHUNKIO_SANITIZE"), "sanitizers reserve more than the limit")
    def test_measuring_with_little_memory(self):
        self.foreign_file("file.h5", (50, 64, 64, 3), count=3000)
        for mebibytes in (300, 350, 400, 500, 700):
            limit = mebibytes << 20
            result = self.run_h5pack("tune", "file.h5", "--measure", *MACHINE, preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_AS, (limit, limit)))
            self.assertIn(result.returncode, (0, 1), result.stderr)

    def test_measuring_leaves_nothing_behind(self):
        make_class_folder(self.dir / "photos", ["cat"], 3)
        (self.dir / "disk").mkdir()
        report = self.tune("photos", "--measure", "--scratch", "disk")
        self.assertEqual(report["disk"]["origin"], "measured")
        self.assertEqual(list((self.dir / "disk").iterdir()), [])
        process = self.start(["tune", "photos", "--measure", "--scratch", "disk"])
        # The file that is read to measure the disk has no name, but it is open: it is at work.
        def at_work():
            for link in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
                try:
                    if os.readlink(link).startswith(str(self.dir / "disk")):
                        return True
                except FileNotFoundError:
                    pass  # closed in the meantime
            return False
        deadline = time.monotonic() + 60
        while not at_work() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        code, _, errors = self.end(process)
        self.assertEqual(code, 130, errors)
        self.assertEqual(len(errors.splitlines()), 1)
        self.assertEqual(list((self.dir / "disk").iterdir()), [])

    def test_bad_input(self):
        self.pack_photos(classes=["cat"])
        (self.dir / "empty").mkdir()
        (self.dir / "text.h5").write_text("no HDF5")
        self.foreign_file("tiny.h5", (2, 64, 64, 3), count=4)  # hardly anything to measure
        for arguments, code, names, way_out in (
                (["gone.h5"], 1, ["gone.h5"], "No such file"),
                (["empty"], 1, ["empty"], "no images"),
                (["text.h5"], 1, ["text.h5"], "HDF5"),
                (["photos.h5", "--memory-budget", "0"], 2, ["--memory-budget"], "at least"),
                (["photos.h5", "--memory-budget", "1MiB"], 1, ["1048576"], "--memory-budget"),
                (["photos.h5", "--batch", "0"], 2, ["--batch"], "1 or more"),
                (["photos.h5", "--step-ms", "-1"], 2, ["--step-ms"], "from 0"),
                (["photos.h5", "--disk", "floppy"], 2, ["floppy"], "hdd, sata-ssd"),
                (["photos.h5", "--disk", "hdd", "--measure"], 2, ["--measure"], "excludes --"),
                (["photos.h5", "--resize", "16"], 2, ["--resize"], "HDF5"),
                (["photos", "--kind", "hdf5"], 1, ["photos"], "is a folder"),
                (["photos", "--measure", "--scratch", "nowhere"], 1, ["nowhere"], "No such file"),
                (["photos", "--scratch", "."], 2, ["--measure"], "requires|needs"),
                (["photos", "--images", "b"], 2, ["--images"], "HDF5"),
                (["photos", "--root", "."], 2, ["--root"], "CSV"),
                (["10x32x32x3", "--layout", "nchw"], 2, ["--layout"], "HDF5"),
                (["10x32x32x3", "--resize", "16"], 2, ["10x32x32x3", "--resize 16"], "name the size"),
                (["10x32x32x3", "--channels", "gray"], 2, ["10x32x32x3"], "1 channel"),
                (["10x99999999x1x3"], 2, ["99999999"], "2\\^20"),
                (["1099511627776x2048x2048x3", "--batch", "2"], 2, ["1099511627776"], "2\\^63"),
                (["10x0x1x3"], 1, ["10x0x1x3"], "No such file"),
                (["tiny.h5", "--measure"], 2, ["tiny.h5"], "--disk")):
            with self.subTest(arguments):
                self.assert_refused(["tune", *arguments], code, names, way_out)
