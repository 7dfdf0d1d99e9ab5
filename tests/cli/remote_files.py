"""Files that tests pack, and then read from a server."""

import json
import os
import time
from unittest import mock

import numpy as np

from file_server import FileServer, wait_for
from matrices import anndata_file, random_matrix
from support import CliTest


def environment():
    """Without what this machine knows of stores and certificates."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("AWS_") and name not in ("CURL_CA_BUNDLE", "SSL_CERT_FILE")}
    return kept | {"HOME": "/nonexistent", "no_proxy": "*", "AWS_EC2_METADATA_DISABLED": "true"}


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

    def write_small_chunks(self, name="small.h5", count=3000):
        """Images of 768 bytes, each a chunk; h5pack would not write such a file."""
        self.write_h5(name, images={"data": np.random.default_rng(0).integers(0, 255, (count, 16, 16, 3), np.uint8),
                                    "chunks": (1, 16, 16, 3)}, labels=np.arange(count) % 7)

    def pack_every_kind(self):
        self.pack()
        self.h5pack("repack", "photos.h5", "-o", "gzip.h5", "--filter", "deflate:1")
        self.h5pack("folder", "photos", "-o", "encoded.h5", "--store", "encoded")
        for part in range(3):
            self.h5pack("folder", "photos", "-o", "s.h5", "--shard", f"{part}/3")
        self.write_small_chunks()
        anndata_file(self.dir / "m.h5ad", random_matrix())

    def pack_spread(self):
        """Some 25 MB, with an index of chunks that is spread over them in some 500 nodes."""
        self.write_small_chunks("spread.h5", 30_000)

    def digests(self, path, *options):
        epochs = self.h5pack_json("stream", path, "--digest", "--epochs", 2, "--batch", 16, *options)
        return [(e["images"], e["order_digest"], e["pixel_digest"], e["field_digests"]) for e in epochs]

    def assert_waits_for_server(self, path, seconds, pixel_digests, *options):
        """The server of a file goes away in the first of as many epochs as there are digests, and comes back."""
        first = self.serve(lambda number: 0.1)
        process = self.start(["stream", f"{first.url}/{path}", "--digest", "--epochs", len(pixel_digests), "--json",
                              "--quiet", *options])
        wait_for(lambda: len(first.requests) > 4)
        first.close()
        time.sleep(seconds)
        self.assertIsNone(process.poll(), "it waits")
        self.serve(port=first.port)
        code, out, errors = self.end(process)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual([json.loads(line)["pixel_digest"] for line in out.splitlines()], pixel_digests)

    def assert_same(self, url, path, *options):
        self.assertEqual(self.digests(url, *options), self.digests(path, *options))
