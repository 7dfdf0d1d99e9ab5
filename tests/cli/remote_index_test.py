"""An index of remote files in a local file (`h5pack index`), with which they open."""

import unittest

from remote_files import RemoteTest


class RemoteIndexTest(RemoteTest):
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


if __name__ == "__main__":
    unittest.main()
