"""Shows that layer_check.py reports every kind of wrong include, and nothing else."""

import pathlib
import tempfile
import unittest

import layer_check

# Headers that the includes below lead to.
HEADERS = ["libchunkio/src/base/a.hpp", "libchunkio/src/plan/a.hpp", "libchunkio/src/io/a.hpp", "libchunkio/src/read/ring.hpp",
           "libchunkio/src/advice/a.hpp", "tools/cli/a.hpp", "tools/h5pack/image/a.hpp", "tools/h5pack/pack/a.hpp",
           "bench/harness/a.hpp", "bench/chunkbench/a.hpp", "tests/support/a.hpp"]

ALLOWED = [
    ("libchunkio/src/base/b.hpp", "#include <vector>"),
    ("libchunkio/src/plan/a.cpp", '#include "base/a.hpp"'),
    ("libchunkio/src/plan/b.cpp", '#include "plan/a.hpp"'),
    ("libchunkio/src/h5/a.cpp", "#include <hdf5.h>"),
    ("libchunkio/src/h5/b.cpp", "#include <libdeflate.h>"),
    ("libchunkio/src/advice/a.cpp", '#include "read/ring.hpp"\n#include <chunkio/loader.hpp>'),
    ("libchunkio/src/device/a.cu", "#include <cuda_runtime.h>"),
    ("libchunkio/src/base/trace.cpp", "#include <nvtx3/nvToolsExt.h>"),
    ("libchunkio/include/chunkio/a.hpp", "#include <chunkio/export.hpp>\n#include <span>"),
    ("libchunkio/include/chunkio/torch.hpp", "#include <chunkio/a.hpp>\n#include <torch/types.h>"),
    ("libchunkio/include/chunkio/cuda/torch.hpp", "#include <chunkio/torch.hpp>\n#include <torch/types.h>"),
    ("tools/h5pack/image/decode.cpp", "#include <opencv2/imgcodecs.hpp>"),
    ("tools/h5pack/commands/b.cpp", '#include "h5pack/pack/a.hpp"\n#include <CLI/CLI.hpp>'),
    ("bench/chunkbench/b.cpp", '#include "harness/a.hpp"\n#include "cli/a.hpp"'),
    ("tests/unit/io/a_test.cpp", '#include "io/a.hpp"\n#include "support/a.hpp"'),
    ("samples/a.cpp", "#include <opencv2/core.hpp>\n#include <chunkio/chunkio.hpp>"),
]

REFUSED = [
    ("libchunkio/src/base/b.cpp", '#include "plan/a.hpp"'),
    ("libchunkio/src/image/a.cpp", '#include "plan/a.hpp"'),
    ("libchunkio/src/plan/b.hpp", '#include "io/a.hpp"'),
    ("libchunkio/src/io/b.hpp", '  #  include "read/ring.hpp"'),
    ("libchunkio/src/write/b.hpp", '#include "read/ring.hpp"'),
    ("libchunkio/src/read/b.cpp", '#include "advice/a.hpp"'),
    ("libchunkio/src/base/b.cpp", '#include "../plan/a.hpp"'),
    ("libchunkio/src/base/b.cpp", '#include "a.hpp"'),
    ("libchunkio/src/base/b.cpp", '#include "base/absent.hpp"'),
    ("libchunkio/src/utils/b.hpp", "#include <vector>"),
    ("libchunkio/src/b.hpp", "#include <vector>"),
    ("libchunkio/src/io/b.cpp", "#include <hdf5.h>"),
    ("libchunkio/src/read/b.cpp", "#include <H5Dpublic.h>"),
    ("libchunkio/src/io/b.cpp", "#include <cuda_runtime.h>"),
    ("libchunkio/src/device/b.cpp", "#include <nvtx3/nvToolsExt.h>"),
    ("libchunkio/src/plan/b.cpp", "#include <tbb/parallel_for.h>"),
    ("libchunkio/src/read/b.cpp", "#include <libdeflate.h>"),
    ("libchunkio/include/chunkio/b.hpp", "#include <hdf5.h>"),
    ("libchunkio/include/chunkio/b.hpp", "#include <tbb/task_arena.h>"),
    ("libchunkio/include/chunkio/b.hpp", '#include "base/a.hpp"'),
    ("libchunkio/include/chunkio/b.hpp", "#include <torch/types.h>"),
    ("libchunkio/include/chunkio/b.hpp", "#include <chunkio/torch.hpp>"),
    ("libchunkio/include/chunkio/cuda/b.hpp", "#include <chunkio/cuda/torch.hpp>"),
    ("libchunkio/include/chunkio/torch.hpp", "#include <hdf5.h>"),
    ("tools/cli/b.cpp", '#include "h5pack/image/a.hpp"'),
    ("tools/h5pack/b.cpp", "#include <vector>"),
    ("tools/h5pack/image/b.cpp", '#include "h5pack/pack/a.hpp"'),
    ("tools/h5pack/pack/b.cpp", "#include <opencv2/core.hpp>"),
    ("tools/h5pack/pack/b.cpp", "#include <CLI/CLI.hpp>"),
    ("tools/h5pack/commands/b.cpp", '#include "base/a.hpp"'),
    ("tools/h5pack/commands/b.cpp", '#include "../../../libchunkio/src/base/a.hpp"'),
    ("bench/harness/b.cpp", '#include "chunkbench/a.hpp"'),
    ("bench/harness/b.cpp", '#include "support/a.hpp"'),
    ("bench/chunkbench/b.cpp", '#include "h5pack/image/a.hpp"'),
    ("samples/b.cpp", "#include <base/a.hpp>"),
]


class LayerCheck(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in [*((header, "#pragma once") for header in HEADERS), *files]:
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("// A comment.\n" + text + "\n", encoding="utf-8")
            return layer_check.check_tree(root)

    def test_a_good_tree_passes(self):
        problems, num_files = self.check(ALLOWED)
        self.assertEqual(problems, [])
        self.assertEqual(num_files, len(HEADERS) + len(ALLOWED))

    def test_every_wrong_include_is_reported_with_file_and_line(self):
        for name, text in REFUSED:
            with self.subTest(name=name, text=text):
                problems, _ = self.check([(name, text)])
                self.assertEqual([p for p in problems if p.startswith(f"{name}:2: ")], problems)
                self.assertNotEqual(problems, [])
