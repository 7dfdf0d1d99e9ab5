"""Files of web servers and object stores: the same bytes as from a disk, whatever the server does meanwhile."""

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
import time
import unittest
from unittest import mock

import h5py
import numpy as np

from file_server import FileServer, wait_for
from key_server import KeyServer
from matrices import anndata_file, random_matrix
from support import H5PACK, CliTest, arrays, damaged_heaps, make_class_folder

KEYS = {"AKIDEXAMPLE": "a/secret+key"}


def environment(**more):
    """Without what this machine knows of stores and certificates."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("AWS_") and name not in ("CURL_CA_BUNDLE", "SSL_CERT_FILE")}
    return kept | {"HOME": "/nonexistent", "no_proxy": "*", "AWS_EC2_METADATA_DISABLED": "true"} | more


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


class RemoteTest(CliTest):
    def setUp(self):
        super().setUp()
        patched = mock.patch.dict(os.environ, environment(), clear=True)
        patched.start()
        self.addCleanup(patched.stop)

    def serve(self, *arguments, **options):
        server = FileServer(self.dir, *arguments, **options)
        self.addCleanup(server.close)
        return server

    def pack(self, *options, size=160, per_class=60, output="photos.h5"):
        """Some 9 MB, in 9 chunks."""
        self.pack_photos("--chunk", 14, *options, per_class=per_class, height=size, width=size, output=output)

    def write_small_chunks(self):
        """Some 2.5 MB; h5pack would not write such a file."""
        self.write_h5("small.h5", images={"data": np.random.default_rng(0).integers(0, 255, (3000, 16, 16, 3), np.uint8),
                                          "chunks": (1, 16, 16, 3)}, labels=np.arange(3000) % 7)

    def pack_every_kind(self):
        self.pack()
        self.h5pack("repack", "photos.h5", "-o", "gzip.h5", "--filter", "deflate:1")
        self.h5pack("folder", "photos", "-o", "encoded.h5", "--store", "encoded")
        for part in range(3):
            self.h5pack("folder", "photos", "-o", "s.h5", "--shard", f"{part}/3")
        self.write_small_chunks()
        anndata_file(self.dir / "m.h5ad", random_matrix())

    def digests(self, path, *options):
        epochs = self.h5pack_json("stream", path, "--digest", "--epochs", 2, "--batch", 16, *options)
        return [(e["images"], e["order_digest"], e["pixel_digest"], e["field_digests"]) for e in epochs]

    def assert_same(self, url, path, *options):
        self.assertEqual(self.digests(url, *options), self.digests(path, *options))

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

    def test_requests_are_under_way_at_the_same_time(self):
        """Each takes 0.1 s, so that one after the other would take 40 times as long."""
        self.pack(per_class=400)
        server = self.serve(lambda number: 0.1)
        before = time.monotonic()
        epoch, = self.h5pack_json("stream", f"{server.url}/photos.h5", "--threads", 2)
        self.assertEqual(epoch["images"], 800)
        self.assertLess(time.monotonic() - before, 0.1 * len(server.requests) / 2)

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
        expected = self.digests("photos.h5")
        first = self.serve(lambda number: 0.05)
        process = self.start(["stream", f"{first.url}/photos.h5", "--digest", "--epochs", 2, "--batch", 16, "--json"])
        wait_for(lambda: len(first.requests) > 4)
        first.close()
        time.sleep(2)
        self.serve(port=first.port)
        code, out, errors = self.end(process)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(out.count(expected[0][2]), 2, "the pixels of both epochs")

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

    # ---- What is kept on a local disk ----

    def test_the_second_epoch_comes_from_the_disk(self):
        self.pack_every_kind()
        server = self.serve()
        for name, *options in (["photos.h5"], ["photos.h5", "--source", "hdf5"], ["photos.h5", "--order", "random"],
                               ["gzip.h5"], ["gzip.h5", "--source", "hdf5"], ["encoded.h5", "--decode", 64],
                               ["s-*-of-00003.h5"], ["small.h5"], ["m.h5ad"]):
            with self.subTest(name, options=options):
                url = f"{server.url}/{name}"
                self.assert_same(url, name, *options, "--remote-cache", "kept")
                before = len(server.requests)
                self.assert_same(url, name, *options, "--remote-cache", "kept")
                self.assertLessEqual(len(server.requests) - before, 3 if "*" in name else 1, "to open it")

    def test_what_came_with_the_opening_is_kept(self):
        self.write_small_chunks()
        server = self.serve(lambda number: 0.5 if number else None)  # longer than a reader waits for what is read ahead
        for _ in range(2):
            self.h5pack("stream", f"{server.url}/small.h5", "--remote-cache", "kept")
        first, *others = [range.removeprefix("bytes=").split("-") for _, range in server.requests]
        self.assertEqual(first, others.pop())
        self.assertGreater(min(int(begin) for begin, _ in others), int(first[1]))

    def test_what_comes_comes_once(self):
        self.pack(per_class=120)
        size = (self.dir / "photos.h5").stat().st_size
        for epochs in (1, 3):
            with self.subTest(epochs=epochs):
                server = self.serve(lambda number: 0.05)
                self.h5pack("stream", f"{server.url}/photos.h5", "--remote-cache", f"kept-{epochs}", "--epochs", epochs)
                self.assertLess(server.bytes, 1.3 * size + (2 << 20), "once, but for requests that were slow and came twice")

    def test_a_small_cache(self):
        self.pack(per_class=120)
        expected = self.digests("photos.h5")
        server = self.serve()
        for _ in range(3):
            self.assertEqual(self.digests(f"{server.url}/photos.h5", "--remote-cache", "kept", "--remote-cache-bytes",
                                          "5MiB"), expected)
        kept = sum(512 * file.stat().st_blocks for file in (self.dir / "kept").iterdir())
        self.assertLess(kept, 6 << 20)
        self.assertGreater(kept, 2 << 20)

    def test_processes_share_a_cache_and_may_be_killed(self):
        self.pack(per_class=120)
        expected = self.digests("photos.h5")
        server = self.serve(lambda number: 0.02)
        stream = ["stream", f"{server.url}/photos.h5", "--digest", "--epochs", 2, "--batch", 16, "--json",
                  "--remote-cache", "kept"]
        killed = self.start(stream)
        wait_for(lambda: len(server.requests) > 5)
        killed.kill()
        self.end(killed)
        for process in [self.start(stream) for _ in range(3)]:
            code, out, errors = self.end(process)
            self.assertEqual((code, errors), (0, ""))
            self.assertEqual(out.count(expected[0][2]), 2, "the pixels of both epochs")
        self.assertEqual(len(list((self.dir / "kept").iterdir())), 1)

    def test_a_cache_whose_disk_lies_or_is_full(self):
        self.pack()
        expected = self.digests("photos.h5")
        server = self.serve()
        url = f"{server.url}/photos.h5"
        self.assertEqual(self.digests(url, "--remote-cache", "kept"), expected)
        kept, = (self.dir / "kept").iterdir()
        damaged = bytearray(kept.read_bytes())
        for place in range(1000, len(damaged), 100_000):
            damaged[place] ^= 1
        kept.write_bytes(damaged)
        for _ in range(2):
            self.assertEqual(self.digests(url, "--remote-cache", "kept"), expected)
        result, _ = self.traced(["-e", "inject=pwrite64:error=ENOSPC:when=3+"], "stream", url, "--digest", "--json",
                                "--batch", 16, "--remote-cache", "full")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(expected[0][2], result.stdout)

    def test_wrong_bytes_are_not_kept(self):
        self.pack(per_class=120)
        expected = self.digests("photos.h5")
        chosen = random.Random(1)
        wrong = []

        def fault(number):
            if number > 2 and len(wrong) < 3 and chosen.random() < 0.3:
                wrong.append(number)
                return "wrong"
            return None

        server = self.serve(fault)
        self.assertEqual(self.digests(f"{server.url}/photos.h5", "--remote-cache", "kept"), expected)
        self.assertEqual(len(wrong), 3)
        before = len(server.requests)
        self.assertEqual(self.digests(f"{server.url}/photos.h5", "--remote-cache", "kept", "--verify", "off"), expected)
        self.assertEqual(len(server.requests), before + 1, "to open it")

    def test_another_version_is_another_file(self):
        self.pack()
        server = self.serve()
        url = f"{server.url}/photos.h5"
        first = self.digests(url, "--remote-cache", "kept")
        self.h5pack("repack", "photos.h5", "-o", "again.h5", "--order", "shuffled")
        (self.dir / "again.h5").rename(self.dir / "photos.h5")
        second = self.digests(url, "--remote-cache", "kept")
        self.assertNotEqual(first, second)
        self.assertEqual(second, self.digests("photos.h5"))

    def pack_spread(self):
        """Some 25 MB, with an index of chunks that is spread over them in some 500 nodes."""
        self.write_h5("spread.h5", images={"data": np.random.default_rng(0).integers(0, 255, (30_000, 16, 16, 3), np.uint8),
                                           "chunks": (1, 16, 16, 3)}, labels=np.arange(30_000) % 7)

    def test_what_is_spread_comes_together(self):
        """Each request takes 0.1 s, and there are 50 blocks of 512 KiB."""
        self.pack_spread()
        size = (self.dir / "spread.h5").stat().st_size
        server = self.serve(lambda number: 0.1)
        self.h5pack("stream", f"{server.url}/spread.h5")
        self.assertLess(len(server.requests), 20 + size / (12 << 20) + 1.5 * size / (2 << 20))
        self.assertLess(server.bytes, 2.6 * size, "for the index, and for an epoch")
        self.assert_same(f"{server.url}/spread.h5", "spread.h5")

    # ---- An index in a local file ----

    def test_an_index_opens_every_kind_of_file(self):
        self.pack_every_kind()
        self.pack_spread()
        server = self.serve()
        for name, *options in (["photos.h5"], ["gzip.h5", "--source", "hdf5"], ["encoded.h5", "--decode", 64],
                               ["s-*-of-00003.h5"], ["small.h5"], ["spread.h5"], ["m.h5ad"]):
            with self.subTest(name, options=options):
                url, files = f"{server.url}/{name}", 3 if "*" in name else 1
                report, = self.h5pack_json("index", url, "-o", f"{name[0]}{files}-{len(name)}.index")
                self.assertEqual(report["bytes"], (self.dir / report["path"]).stat().st_size)
                before = len(server.requests)
                self.h5pack("info", url, "--remote-index", report["path"])
                self.assertLessEqual(len(server.requests) - before, files + 1, "one for each file, and one for labels")
                self.assert_same(url, name, *options, "--remote-index", report["path"])
                read = server.bytes
                self.h5pack("stream", url, *options, "--remote-index", report["path"])
                size = sum((self.dir / file).stat().st_size for file in
                           ([f"s-{i:05}-of-00003.h5" for i in range(3)] if files == 3 else [name]))
                self.assertLess(server.bytes - read, 1.5 * size + files * (2 << 20), "nothing of the index of chunks")

    def test_wrong_bytes_do_not_stay_in_an_index_file(self):
        self.pack_spread()
        server = self.serve()
        url = f"{server.url}/spread.h5"
        self.h5pack("index", url, "-o", "right.index")
        asked = len(server.requests)
        for wrong in range(1, asked):
            with self.subTest(request=wrong):
                server.faults = lambda number, at=len(server.requests) + wrong: "wrong" if number == at else None
                result = self.run_h5pack("index", url, "-o", "spread.index", "--force")
                self.assertEqual(result.returncode, 0, result.stderr)
                server.faults = lambda number: None
                self.assert_same(url, "spread.h5", "--remote-index", "spread.index")

    def test_an_index_of_something_else(self):
        self.pack()
        server = self.serve()
        url = f"{server.url}/photos.h5"
        self.h5pack("index", url, "-o", "photos.index")
        self.assert_fails(["index", url, "-o", "photos.index"], "photos.index exists")
        self.h5pack("index", url, "-o", "photos.index", "--force")
        self.assert_fails(["index", "photos.h5", "-o", "other.index"], "photos.h5 is a local file.*https://", code=2)
        self.assert_fails(["info", f"{url}?id=7", "--remote-index", "photos.index"],
                          "photos.index is an index file of other files than http.*photos.h5; make one of it with h5pack index", code=2)
        self.assert_fails(["info", url, "--remote-index", "photos.h5"], "photos.h5 is no index file of remote files")
        self.assert_fails(["info", url, "--remote-index", "none.index"], "none.index")
        (self.dir / "photos.h5").touch()
        self.assert_fails(["info", url, "--remote-index", "photos.index"],
                          "photos.index is an index file of another version of http.*photos.h5; make it again with h5pack index")
        self.assertEqual([file.name for file in self.dir.glob("*.index*")], ["photos.index"])

    def test_a_folder_that_cannot_be(self):
        self.pack()
        server = self.serve()
        (self.dir / "file").write_text("no folder")
        self.assert_fails(["stream", f"{server.url}/photos.h5", "--remote-cache", "file"],
                          "cannot keep remote files in .*file: Not a directory; choose another folder with remote_cache .--remote-cache")

    # ---- What is refused ----

    @unittest.skipUnless(h5py.version.hdf5_version_tuple < (1, 12, 0), "libhdf5 crashes on none of these")
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

    # ---- An object store ----

    def test_signed_requests(self):
        self.pack()
        (self.dir / "bucket" / "a folder").mkdir(parents=True)
        (self.dir / "photos.h5").rename(self.dir / "bucket" / "a folder" / "phötos+1.h5")
        server = self.serve(keys=KEYS)
        path, url = "bucket/a folder/phötos+1.h5", "s3://bucket/a folder/phötos+1.h5"
        expected = self.digests(path)
        key = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "a/secret+key"}
        with mock.patch.dict(os.environ, {"AWS_ENDPOINT_URL_S3": server.url, "AWS_REGION": "eu-west-3"} | key):
            self.assertEqual(self.digests(url), expected)
            with mock.patch.dict(os.environ, {"AWS_SESSION_TOKEN": "a/token=="}):
                self.assertEqual(self.digests(url), expected)
            with mock.patch.dict(os.environ, {"AWS_SECRET_ACCESS_KEY": "another"}):
                result = self.run_h5pack("info", url)
                self.assert_one_line(result, 1, "may not read s3://bucket/a folder", "SignatureDoesNotMatch")
                self.assertNotIn("secret</", result.stderr)
        (self.dir / ".aws").mkdir()
        (self.dir / ".aws" / "credentials").write_text(
            "[default]\naws_access_key_id = nobody\n\n[train]\naws_access_key_id=AKIDEXAMPLE\naws_secret_access_key = a/secret+key\n")
        (self.dir / ".aws" / "config").write_text(f"[profile train]\nregion = us-west-2\nendpoint_url = {server.url}/\n")
        with mock.patch.dict(os.environ, {"HOME": str(self.dir), "AWS_PROFILE": "train"}):
            self.assertEqual(self.digests(url), expected)
        # Anybody may read what needs no key.
        anonymous = self.serve()
        with mock.patch.dict(os.environ, {"AWS_ENDPOINT_URL": anonymous.url}):
            self.assertEqual(self.digests(url), expected)

    def places(self, keys):
        """Where keys come from, by the environment that leads there."""
        (self.dir / "identity").write_text("an/identity\n")
        (self.dir / "permission").write_text("may")
        (self.dir / "config").write_text(f"[default]\nrole_arn = arn:aws:iam::1:role/trainer\n"
                                         f"web_identity_token_file = {self.dir}/identity\n")
        return {"instance": {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{keys.url}/"},
                "container": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{keys.url}/container",
                              "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": f"{self.dir}/permission"},
                "web identity": {"AWS_ROLE_ARN": "arn:aws:iam::1:role/trainer", "AWS_ENDPOINT_URL_STS": keys.url,
                                 "AWS_WEB_IDENTITY_TOKEN_FILE": f"{self.dir}/identity"},
                "web identity of a profile": {"AWS_CONFIG_FILE": f"{self.dir}/config", "AWS_ENDPOINT_URL_STS": keys.url}}

    def test_keys_of_machines_and_web_identities(self):
        for part in range(3):
            self.pack_photos("--chunk", 8, "--shard", f"{part}/3", output="s.h5", per_class=30, height=64, width=64)
        (self.dir / "bucket").mkdir()
        for file in self.dir.glob("s-*.h5"):
            file.rename(self.dir / "bucket" / file.name)
        expected = self.digests("bucket/s-*-of-00003.h5")
        valid = {}
        keys = KeyServer(valid)
        self.addCleanup(keys.close)
        server = self.serve(keys=valid)
        for place, leads_there in self.places(keys).items():
            with self.subTest(place), mock.patch.dict(os.environ, {"AWS_ENDPOINT_URL_S3": server.url} | leads_there):
                before = len(keys.given)
                self.assertEqual(self.digests("s3://bucket/s-*-of-00003.h5"), expected)
                self.assertEqual(len(keys.given), before + 1, "one key for all files")

    def test_keys_are_renewed(self):
        self.pack()
        (self.dir / "bucket").mkdir()
        (self.dir / "photos.h5").rename(self.dir / "bucket" / "photos.h5")
        expected = self.digests("bucket/photos.h5")
        valid = {}
        keys = KeyServer(valid, lifetime=2)
        self.addCleanup(keys.close)
        server = self.serve(lambda number: 0.1, keys=valid)
        with mock.patch.dict(os.environ, {"AWS_ENDPOINT_URL_S3": server.url} | self.places(keys)["instance"]):
            epochs = self.h5pack_json("stream", "s3://bucket/photos.h5", "--epochs", 40, "--batch", 16, "--digest")
        self.assertEqual([epoch["pixel_digest"] for epoch in epochs[:2]], [epoch[2] for epoch in expected])
        self.assertGreaterEqual(len(keys.given), 3)

    def test_places_without_keys(self):
        keys = KeyServer({}, faults=lambda path: 403 if path != "/latest/api/token" else None)
        self.addCleanup(keys.close)
        places = self.places(keys)
        for place, texts in (("instance", ["security-credentials", "403"]), ("container", ["AWS_CONTAINER_CREDENTIALS_FULL_URI", "AccessDenied"]),
                             ("web identity", ["identity", "AccessDenied"])):
            with self.subTest(place), mock.patch.dict(os.environ, places[place]):
                result = self.run_h5pack("info", "s3://bucket/x.h5")
                self.assert_one_line(result, 1, "cannot get a key of the object store", *texts)
                for secret in ("an/identity", "may\n"):
                    self.assertNotIn(secret, result.stderr)
        with mock.patch.dict(os.environ, {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://keys.example/may"}):
            self.assert_one_line(self.run_h5pack("info", "s3://bucket/x.h5"), 1, "another machine without https")
        (self.dir / "identity").unlink()
        with mock.patch.dict(os.environ, places["web identity"]):
            self.assert_one_line(self.run_h5pack("info", "s3://bucket/x.h5"), 1, "identity is not there, or empty")
        # No instance at all is no error: anybody may read what needs no key.
        self.pack()
        (self.dir / "bucket").mkdir()
        (self.dir / "photos.h5").rename(self.dir / "bucket" / "photos.h5")
        nowhere = {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1"}
        with mock.patch.dict(os.environ, {"AWS_ENDPOINT_URL_S3": self.serve().url} | nowhere):
            self.h5pack("info", "s3://bucket/photos.h5")


if __name__ == "__main__":
    unittest.main()
