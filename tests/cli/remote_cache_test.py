"""Remote files that are kept on a local disk: they come once, and right."""

import random
import unittest

from file_server import wait_for
from remote_files import RemoteTest


class RemoteCacheTest(RemoteTest):
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
        stream = ["stream", f"{server.url}/photos.h5", "--digest", "--epochs", 2, "--batch", 16, "--json", "--quiet",
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

    def test_a_folder_that_cannot_be(self):
        self.pack()
        server = self.serve()
        (self.dir / "file").write_text("no folder")
        self.assert_fails(["stream", f"{server.url}/photos.h5", "--remote-cache", "file"],
                          "cannot keep remote files in .*file: Not a directory; choose another folder with remote_cache .--remote-cache")


if __name__ == "__main__":
    unittest.main()
