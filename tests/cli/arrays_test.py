"""h5pack on files that other numbers than images lead."""

import unittest

import h5py
import numpy as np

from support import CliTest

N = 60


class ArraysTest(CliTest):
    def setUp(self):
        super().setUp()
        row = np.arange(N)
        self.x = (row[:, None] * 100 + np.arange(50)).astype(np.float32)
        self.write_h5("x.h5", x={"data": self.x, "chunks": (8, 50), "compression": "gzip"}, labels=row % 3, id=row * 2)

    def test_info(self):
        info = self.h5pack_json("info", "x.h5")[0]
        self.assertEqual((info["leading"], info["images"], info["layout"], info["channels"]), ("x", None, None, None))
        self.assertEqual((info["shape"], info["dtype"]), ([N, 50], "float32"))
        self.assertEqual(info["labels"]["name"], "labels")
        self.assertEqual(info["storage"]["raw_bytes"], N * 200)
        text = self.h5pack("info", "x.h5")
        self.assertRegex(text, r"(?m)^samples +60 x \[50\] float32 \(dataset /x\)$")
        self.assertIn("of float32", text)
        self.assertNotIn("layout", text)
        self.assertNotIn("statistics", text.replace("classes or statistics", ""))

    def test_stream(self):
        epochs = self.h5pack_json("stream", "x.h5", "--batch", 7, "--epochs", 2, "--fields", "id", "--digest")
        self.assertEqual([epoch["images"] for epoch in epochs], [N, N])
        self.assertEqual(len({epoch["pixel_digest"] for epoch in epochs}), 1)
        self.assertEqual(set(epochs[0]["field_digests"]), {"labels", "id"})
        self.assertNotEqual(epochs[0]["order_digest"], epochs[1]["order_digest"])
        self.write_h5("plain.h5", x=self.x, labels=np.arange(N) % 3)
        plain = self.h5pack_json("stream", "plain.h5", "--digest")[0]
        self.assertEqual(plain["pixel_digest"], epochs[0]["pixel_digest"])
        text = self.h5pack("stream", "x.h5", "--batch", 7)
        self.assertRegex(text, r"(?m)^samples +x\.h5: 60 samples of x, float32 \[50\]")

    def test_verify_and_doctor(self):
        self.assertIn("no digests", self.h5pack("verify", "x.h5"))
        report = self.h5pack_json("doctor", "x.h5", "--step-ms", 1, "--batch", 8, "--seconds", 0.2)[0]
        self.assertEqual((report["samples"], report["sample_bytes"]), (N, 200))
        with h5py.File(self.dir / "x.h5") as file:
            offset = file["x"].id.get_chunk_info(3).byte_offset
        with open(self.dir / "x.h5", "r+b") as file:
            file.seek(offset)
            file.write(b"no deflate")
        result = self.run_h5pack("verify", "x.h5")
        self.assertEqual(result.returncode, 4)
        self.assertIn("rows 24 to 31", result.stdout)

    def test_what_needs_images_says_so(self):
        for command in (["preview", "x.h5", "-o", "out.png"], ["repack", "x.h5", "-o", "out.h5"], ["tune", "x.h5"],
                        ["export", "x.h5", "-o", "out"]):
            with self.subTest(command[0]):
                self.assert_refused(command, 1, ["x.h5", "x float32 [60,50]"], "images.*--images")

    def test_what_leads_is_named_where_it_cannot_be_told(self):
        self.write_h5("two.h5", a=self.x, b=self.x[:, :3])
        for command in ("info", "stream"):
            self.assert_refused([command, "two.h5"], 1, ["two.h5", "a float32 [60,50], b float32 [60,3]"], "--images")
        self.assertEqual(self.h5pack_json("info", "two.h5", "--images", "b")[0]["shape"], [N, 3])
        self.assertEqual(self.h5pack_json("stream", "two.h5", "--images", "a", "--fields", "b")[0]["images"], N)

    def test_several_files(self):
        for number in range(2):
            self.write_h5(f"x-{number:05}-of-00002.h5", x=self.x[number * 30:number * 30 + 30])
        info = self.h5pack_json("info", "x-*-of-00002.h5")[0]
        self.assertEqual((info["leading"], info["shape"]), ("x", [N, 50]))
        self.write_h5("all.h5", x=self.x)
        digests = [self.h5pack_json("stream", name, "--digest")[0]["pixel_digest"]
                   for name in ("x-*-of-00002.h5", "all.h5")]
        self.assertEqual(digests[0], digests[1])
        self.h5pack("link", "x-*-of-00002.h5", "-o", "link.h5")
        with h5py.File(self.dir / "link.h5") as file:
            np.testing.assert_array_equal(file["x"][()], self.x)
        self.write_h5("x-00001-of-00002.h5", x=self.x[30:].astype(np.float64))
        self.assert_refused(["info", "x-*-of-00002.h5"], 1, ["x-00001-of-00002.h5", "element type", "float64"], "pack")


if __name__ == "__main__":
    unittest.main()
