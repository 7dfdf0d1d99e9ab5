"""Files of every version of the format, and of several versions of libhdf5, are read for ever; damaged ones never are.

tests/golden/format holds them; they are never written anew.
"""

import json
import pathlib
import re

import numpy as np

from support import CliTest

FILES = pathlib.Path(__file__).parents[1] / "golden" / "format"
COUNT, SHAPE = 7, (6, 5, 3)

# File -> what is said of it.
REFUSED = {
    "v1-pixel": r"chunk 0",
    "v2-pixel": r"sample 0",
    "v2-label": r"sample 1",
    "v2-digest": r"sample 2",
    "v2-version_3": r"format version 3.*install a newer one",
    "v2-shorter_digests": r"no digests of 7 samples",
    "v2-covered_dataset_gone": r"cover weights",
    "v2-truncated": r"truncated",
}


class GoldenFilesTest(CliTest):
    def test_all_of_them_deliver_the_same(self):
        row, rest = np.mgrid[0:COUNT, 0:np.prod(SHAPE)]
        images = ((row * 31 + rest * 7) % 256).astype(np.uint8).reshape(COUNT, *SHAPE)
        self.write_h5("now.h5", images=images, labels=np.arange(COUNT) * 3 % 4)
        expected = self.digests("now.h5")
        files = sorted(FILES.glob("*.h5"))
        self.assertEqual(len(files), 9)
        for path in files:
            with self.subTest(path.name):
                self.assertEqual(self.digests(path), expected)
                text = self.h5pack("verify", path, "--quiet")
                self.assertIn("structure is sound" if path.name.startswith("third") else "match their digests", text)

    def digests(self, path):
        report = self.h5pack_json("stream", path, "--digest", "--quiet")[0]
        return report["images"], report["pixel_digest"], report["field_digests"]

    def test_what_must_fail_fails(self):
        files = sorted((FILES / "must_fail").glob("*.h5"))
        self.assertEqual({path.stem for path in files}, set(REFUSED))
        for path in files:
            with self.subTest(path.name):
                result = self.run_h5pack("verify", path, "--quiet")
                # A version that is not known is no damage.
                code = 1 if path.stem == "v2-version_3" else 4
                self.assertEqual(result.returncode, code, result.stdout + result.stderr)
                self.assertIsNotNone(re.search(REFUSED[path.stem], result.stdout + result.stderr),
                                     result.stdout + result.stderr)

    def test_a_damaged_chunk_of_version_1_is_told_by_its_rows(self):
        path = FILES / "must_fail" / "v1-pixel.h5"
        damaged, = json.loads(self.run_h5pack("verify", path, "--json", "--quiet").stdout)["damaged"]
        self.assertEqual((damaged["chunk"], damaged["rows"]), (0, [0, 1, 2]))
