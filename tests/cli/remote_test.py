"""Files of web servers: the same bytes as from a disk, whatever the server does meanwhile."""

import contextlib
import getpass
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from unittest import mock

import h5py
import numpy as np

from file_server import wait_for
from matrices import anndata_file, random_matrix
from remote_files import RemoteTest
from support import arrays, damaged_heaps


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def can_connect(port):
    with contextlib.suppress(ConnectionError):
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    return False


class WebServerTest(RemoteTest):
    # ---- The same bytes ----

    def test_every_kind_of_file(self):
        self.pack_every_kind()
        server = self.serve()
        for name, *options in (["photos.h5"], ["photos.h5", "--source", "direct"], ["photos.h5", "--source", "hdf5"],
                               ["photos.h5", "--order", "random"], ["photos.h5", "--resident", "host"],
                               ["photos.h5", "--verify", "always"], ["gzip.h5"], ["encoded.h5", "--decode", 64],
                               ["s-*-of-00003.h5"], ["small.h5"], ["m.h5ad"]):
            with self.subTest(name, options=options):
                self.assert_same(f"{server.url}/{name}", name, *options)

    def test_commands(self):
        self.pack()
        server = self.serve()
        url = f"{server.url}/photos.h5"
        info, = self.h5pack_json("info", url)
        self.assertEqual(info["file"], url)
        self.assertIn("images        120 x", self.h5pack("info", url))
        self.h5pack("verify", url)
        self.h5pack("doctor", url, "--step-ms", 1, "--seconds", 0.2)
        self.h5pack("tune", url, "--disk", "nvme")
        self.h5pack("preview", url, "-o", "sheet.png")
        self.h5pack("export", url, "-o", "out")
        self.h5pack("repack", url, "-o", "again.h5", "--order", "stored")
        np.testing.assert_array_equal(arrays(self.dir / "again.h5")["images"], arrays(self.dir / "photos.h5")["images"])
        anndata_file(self.dir / "m.h5ad", random_matrix())
        self.h5pack("csr", f"{server.url}/m.h5ad", "-o", "rows.h5ad")
        self.assertEqual(self.h5pack_json("info", "rows.h5ad")[0]["num_samples"], 200)

    def test_requests_are_few(self):
        self.pack()
        size = (self.dir / "photos.h5").stat().st_size
        server = self.serve()
        self.h5pack("info", f"{server.url}/photos.h5")
        self.assertLessEqual(len(server.requests), 4)
        before, read = len(server.requests), server.bytes
        self.h5pack("stream", f"{server.url}/photos.h5")
        self.assertLessEqual(len(server.requests) - before, 4 + 2 * 9)
        self.assertLess(server.bytes - read, size + (3 << 20))

    def assert_under_way(self, wanted, path, requests, images):
        """So many requests of an epoch are under way at the same time. Until they are, each takes a second."""
        changed, under_way, most = threading.Condition(), 0, 0

        def answer_late(_):
            nonlocal under_way, most
            with changed:
                under_way += 1
                most = max(most, under_way)
                changed.notify_all()
                changed.wait_for(lambda: most >= wanted, timeout=1)
                under_way -= 1

        server = self.serve(answer_late)
        epoch, = self.h5pack_json("stream", f"{server.url}/{path}", "--threads", 2, "--remote-requests", requests)
        self.assertEqual(epoch["images"], images)
        self.assertGreaterEqual(most, wanted)

    def test_requests_are_under_way_at_the_same_time(self):
        self.pack(per_class=400)
        self.assert_under_way(16, "photos.h5", requests=24, images=800)

    def test_more_requests_reach_further(self):
        """Further than the 64 MiB that are prefetched of a local file."""
        with h5py.File(self.dir / "large.h5", "w") as file:
            file.create_dataset("images", data=np.ones((3200, 160, 160, 3), np.uint8), chunks=(50, 160, 160, 3))
        self.assert_under_way(45, "large.h5", requests=60, images=3200)

    def test_what_is_spread_comes_together(self):
        """Each request takes 0.1 s, and there are 50 blocks of 512 KiB."""
        self.pack_spread()
        size = (self.dir / "spread.h5").stat().st_size
        server = self.serve(lambda number: 0.1)
        self.h5pack("stream", f"{server.url}/spread.h5")
        self.assertLess(len(server.requests), 20 + size / (12 << 20) + 1.5 * size / (2 << 20))
        self.assertLess(server.bytes, 2.6 * size, "for the index, and for an epoch")
        self.assert_same(f"{server.url}/spread.h5", "spread.h5")

    def test_a_look_leaves_few_requests_to_opening(self):
        """What another process looked at first is part of the index, and the rest comes together all the same."""
        self.pack_spread()
        server = self.serve()
        counts = []
        for options in ([], ["--trust"]):
            before = len(server.requests)
            self.h5pack("info", f"{server.url}/spread.h5", *options)
            counts.append(len(server.requests) - before)
        self.assertLessEqual(counts[0], counts[1] + 4)

    # ---- nginx ----

    def nginx(self):
        """nginx on the loopback, with TLS by a certificate of its own: its addresses, and the certificate."""
        if not shutil.which("nginx") or not shutil.which("openssl"):
            self.skipTest("nginx or openssl is not installed")
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "key", "-out", folder / "certificate"],
                       check=True, capture_output=True)
        plain, secure = free_ports(2)
        paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(f"""
            user {getpass.getuser()}; worker_processes 2; pid {folder}/pid; error_log {folder}/error.log; daemon off;
            events {{ worker_connections 256; }}
            http {{ access_log {folder}/access.log; sendfile on; {paths}
                    server {{ listen 127.0.0.1:{plain}; listen 127.0.0.1:{secure} ssl; root {self.dir};
                              ssl_certificate {folder}/certificate; ssl_certificate_key {folder}/key; }} }}""")
        process = subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-e", folder / "error.log"])
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        wait_for(lambda: can_connect(plain) and can_connect(secure))
        return f"http://localhost:{plain}", f"https://localhost:{secure}", folder / "certificate"

    def test_nginx(self):
        self.pack()
        plain, secure, certificate = self.nginx()
        self.assert_same(f"{plain}/photos.h5", "photos.h5")
        self.assert_fails(["info", f"{secure}/photos.h5", "--remote-timeout", 1], "certificate")
        for variable in ("AWS_CA_BUNDLE", "SSL_CERT_FILE"):
            with mock.patch.dict(os.environ, {variable: str(certificate)}):
                self.assert_same(f"{secure}/photos.h5", "photos.h5", "--remote-cache", "kept")
        (self.dir / "photos.h5").write_bytes(b"another file" * 1000)
        self.assert_fails(["info", f"{plain}/photos.h5"], "HDF5")

    # ---- What goes wrong and right again ----

    def test_failures_that_pass(self):
        self.pack(per_class=120)
        expected = self.digests("photos.h5")
        for fault in (500, 503, 429, 408, {"status": 503, "Retry-After": 0}, "reset", "cut", "shifted", 0.2):
            with self.subTest(fault):
                chosen = random.Random(3)
                server = self.serve(lambda _: (dict(fault) if isinstance(fault, dict) else fault)
                                    if chosen.random() < 0.2 else None)
                self.assertEqual(self.digests(f"{server.url}/photos.h5"), expected)
                server.close()

    def test_a_server_that_is_gone_for_a_while(self):
        self.pack(per_class=120)
        pixel_digests = [pixel_digest for _, _, pixel_digest, _ in self.digests("photos.h5")]
        self.assert_waits_for_server("photos.h5", 2, pixel_digests, "--batch", 16)

    def test_a_server_that_is_gone_for_good(self):
        self.pack(per_class=120)
        server = self.serve(lambda number: None if number < 3 else "reset")
        before = time.monotonic()
        result = self.run_h5pack("stream", f"{server.url}/photos.h5", "--quiet", "--remote-timeout", 1)
        self.assert_one_line(result, 1, f"{server.url}/photos.h5", "requests in 1 s brought nothing")
        self.assertLess(time.monotonic() - before, 8)

    def test_requests_that_hang(self):
        self.pack(per_class=120)
        expected = self.digests("photos.h5")
        server = self.serve(lambda number: "hang" if number in (6, 10) else None)
        self.assertEqual(self.digests(f"{server.url}/photos.h5"), expected)

    def test_wrong_bytes_are_asked_for_again(self):
        self.pack(per_class=120)
        self.h5pack("repack", "photos.h5", "-o", "gzip.h5", "--filter", "deflate:1")
        self.h5pack("folder", "photos", "-o", "encoded.h5", "--store", "encoded")
        anndata_file(self.dir / "m.h5ad", random_matrix())
        self.h5pack("csr", "m.h5ad", "-o", "rows.h5ad")
        for name, *options in (["photos.h5"], ["photos.h5", "--source", "hdf5"], ["photos.h5", "--remote-cache", "kept"],
                               ["gzip.h5"], ["gzip.h5", "--source", "hdf5"], ["encoded.h5", "--decode", 64], ["rows.h5ad"]):
            with self.subTest(name, options=options):
                chosen = random.Random(1)
                server = self.serve(lambda number: "wrong" if number > 2 and chosen.random() < 0.05 else None)
                self.assert_same(f"{server.url}/{name}", name, *options)
                self.h5pack("verify", f"{server.url}/{name}")
                server.close()

    def test_the_first_bytes_may_come_wrong(self):
        """Those of a small file hold all of it: what describes it, pixels, labels and digests."""
        self.pack_photos(height=64, width=64)
        expected = self.digests("photos.h5")
        bytes_of_file = (self.dir / "photos.h5").read_bytes()
        self.assertLess(len(bytes_of_file), 512 << 10)
        for place in range(0, len(bytes_of_file), 3881):
            damaged = bytearray(bytes_of_file)
            damaged[place] ^= 1
            with self.subTest(place):
                server = self.serve(lambda number, body=bytes(damaged): body if number == 0 else None)
                self.assertEqual(self.digests(f"{server.url}/photos.h5", "--remote-cache", "kept"), expected)
                server.close()

    def test_bytes_that_stay_wrong_do_not_match_their_digests(self):
        self.pack()
        server = self.serve(lambda number: "wrong" if number > 2 else None)
        self.assert_fails(["stream", f"{server.url}/photos.h5"], "digest")
        self.h5pack("stream", f"{server.url}/photos.h5", "--verify", "off")
        self.assert_fails(["verify", f"{server.url}/photos.h5"], "is damaged", code=4)

    def test_another_object_of_that_name(self):
        self.pack(per_class=120)

        def change(number):
            if number == 4:
                os.utime(self.dir / "photos.h5", (1, 1))

        server = self.serve(change)
        self.assert_fails(["stream", f"{server.url}/photos.h5"], r"photos\.h5 was changed while being read.*open it again")

    def test_interrupt(self):
        self.pack(per_class=120)
        server = self.serve(lambda number: None if number < 3 else "hang")
        process = self.start(["stream", f"{server.url}/photos.h5", "--quiet"])
        wait_for(lambda: len(server.requests) > 3)
        before = time.monotonic()
        process.send_signal(signal.SIGINT)
        self.end(process)
        self.assertLess(time.monotonic() - before, 1)

    # ---- What is refused ----

    def test_files_that_libhdf5_crashes_on(self):
        server = self.serve()
        refused = 0
        for _ in damaged_heaps(self.dir / "x.h5"):
            local, distant = (self.run_h5pack("info", path) for path in ("x.h5", f"{server.url}/x.h5"))
            self.assertIn(distant.returncode, (0, 1), distant.stderr)
            self.assertEqual("damaged or hostile" in distant.stderr, "damaged or hostile" in local.stderr,
                             (local.stderr, distant.stderr))
            self.assertNotIn("install it again", distant.stderr)
            refused += "damaged or hostile" in distant.stderr
        if self.libhdf5_is_old():
            self.assertGreater(refused, 0)

    def test_what_cannot_be_opened(self):
        self.pack()
        (self.dir / "text.h5").write_text("no HDF5 file\n" * 1000)
        (self.dir / "empty.h5").write_bytes(b"")
        server = self.serve()
        for path, texts in ((f"{server.url}/none.h5", ["no file", "404", "NoSuchKey"]),
                            (f"{server.url}/text.h5", ["no HDF5 file|not an HDF5 file"]),
                            (f"{server.url}/empty.h5", ["HDF5"]),
                            (f"{server.url}/s-*-of-00002.h5", ["no file", "s-00000-of-00002.h5"]),
                            (f"{server.url}/", ["names no object"]), ("s3://bucket", ["s3://bucket/train.h5"]),
                            ("http://no-such-host.invalid/x.h5", ["no-such-host.invalid"]),
                            ("http://127.0.0.1:1/x.h5", ["127.0.0.1"])):
            with self.subTest(path):
                result = self.run_h5pack("info", path)
                self.assertIn(result.returncode, (1, 2))
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                for text in texts:
                    self.assertRegex(result.stderr, text)
        for fault, text in ((403, "may not read"), (401, "no key was found"), ("whole", "no ranges"), (418, "HTTP status 418")):
            with self.subTest(fault):
                failing = self.serve(lambda _, fault=fault: fault)
                self.assert_fails(["info", f"{failing.url}/photos.h5"], text)
        self.assertEqual(self.run_h5pack("info", f"{server.url}/photos.h5", "--remote-requests", 0).returncode, 2)

    def test_nothing_secret_is_told(self):
        self.pack()
        chosen = iter([None, None, None, "cut"])
        server = self.serve(lambda _: next(chosen, 403))
        secret = "X-Amz-Signature=abcdef0123456789"
        address = f"http://user:password@127.0.0.1:{server.port}/photos.h5?{secret}&token=t0psecret"
        good = self.serve()
        for result in (self.run_h5pack("info", address.replace(str(server.port), str(good.port))),
                       self.run_h5pack("info", address.replace(str(server.port), str(good.port)), "--json"),
                       self.run_h5pack("stream", address),
                       self.run_h5pack("stream", address.replace("photos", "none"))):
            for text in ("abcdef", "password", "t0psecret"):
                self.assertNotIn(text, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
