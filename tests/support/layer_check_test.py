"""Shows that layer_check.py reports every kind of wrong include, and nothing else."""

import pathlib
import tempfile
import unittest

import layer_check

ALLOWED = [
    ("libchunkio/src/base/a.hpp", "#include <vector>"),
    ("libchunkio/src/plan/a.cpp", '#include "base/a.hpp"'),
    ("libchunkio/src/plan/b.cpp", '#include "plan/a.hpp"'),
    ("libchunkio/src/h5/a.cpp", "#include <hdf5.h>"),
    ("libchunkio/src/io/a.cpp", "#include <oneapi/tbb/task_arena.h>"),
    ("libchunkio/src/h5/b.cpp", "#include <libdeflate.h>"),
    ("libchunkio/src/pipeline/a.cpp", '#include "h5/a.hpp"\n#include <chunkio/loader.hpp>'),
    ("libchunkio/src/device/a.cu", "#include <cuda_runtime.h>"),
    ("libchunkio/src/base/trace.cpp", "#include <nvtx3/nvToolsExt.h>"),
    ("libchunkio/include/chunkio/a.hpp", "#include <chunkio/export.hpp>\n#include <span>"),
    ("libchunkio/include/chunkio/torch.hpp", "#include <chunkio/a.hpp>\n#include <torch/types.h>"),
    ("libchunkio/include/chunkio/cuda/torch.hpp", "#include <chunkio/torch.hpp>\n#include <torch/types.h>"),
    ("tools/h5pack/decode.cpp", "#include <opencv2/imgcodecs.hpp>"),
    ("tools/h5pack/cmd_preview.cpp", '#include "command.hpp"\n#include <opencv2/imgproc.hpp>'),
    ("samples/a.cpp", "#include <opencv2/core.hpp>\n#include <chunkio/chunkio.hpp>"),
]

REFUSED = [
    ("libchunkio/src/base/a.cpp", '#include "plan/a.hpp"'),
    ("libchunkio/src/h5/a.hpp", '#include "io/a.hpp"'),
    ("libchunkio/src/io/a.hpp", '  #  include "pipeline/ring.hpp"'),
    ("libchunkio/src/base/a.cpp", '#include "../plan/a.hpp"'),
    ("libchunkio/src/base/a.cpp", '#include "a.hpp"'),
    ("libchunkio/src/utils/a.hpp", "#include <vector>"),
    ("libchunkio/src/a.hpp", "#include <vector>"),
    ("libchunkio/src/io/a.cpp", "#include <hdf5.h>"),
    ("libchunkio/src/pipeline/a.cpp", "#include <H5Dpublic.h>"),
    ("libchunkio/src/io/a.cpp", "#include <cuda_runtime.h>"),
    ("libchunkio/src/device/a.cpp", "#include <nvtx3/nvToolsExt.h>"),
    ("libchunkio/src/base/a.cpp", "#include <nvtx3/nvtx3.hpp>"),
    ("libchunkio/src/plan/a.cpp", "#include <tbb/parallel_for.h>"),
    ("libchunkio/src/pipeline/a.cpp", "#include <libdeflate.h>"),
    ("libchunkio/src/io/a.cpp", "#include <opencv2/core.hpp>"),
    ("libchunkio/include/chunkio/a.hpp", "#include <hdf5.h>"),
    ("libchunkio/include/chunkio/a.hpp", "#include <tbb/task_arena.h>"),
    ("libchunkio/include/chunkio/a.hpp", '#include "base/philox.hpp"'),
    ("libchunkio/include/chunkio/a.hpp", "#include <torch/types.h>"),
    ("libchunkio/include/chunkio/a.hpp", "#include <chunkio/torch.hpp>"),
    ("libchunkio/include/chunkio/cuda/a.hpp", "#include <chunkio/cuda/torch.hpp>"),
    ("libchunkio/include/chunkio/torch.hpp", "#include <hdf5.h>"),
    ("tools/h5pack/main.cpp", "#include <opencv2/core.hpp>"),
    ("tools/h5pack/main.cpp", '#include "base/host_memory.hpp"'),
    ("tools/h5pack/main.cpp", '#include "../../libchunkio/src/base/host_memory.hpp"'),
    ("tools/h5pack/main.cpp", "#include <hdf5.h>"),
    ("samples/a.cpp", "#include <base/host_memory.hpp>"),
    ("samples/a.cpp", "#include <cuda.h>"),
    ("samples/a.cpp", "#include <nvtx3/nvToolsExt.h>"),
]


class LayerCheck(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files:
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("// A comment.\n" + text + "\n", encoding="utf-8")
            return layer_check.check_tree(root)

    def test_a_good_tree_passes(self):
        problems, num_files = self.check(ALLOWED)
        self.assertEqual(problems, [])
        self.assertEqual(num_files, len(ALLOWED))

    def test_every_wrong_include_is_reported_with_file_and_line(self):
        for name, text in REFUSED:
            with self.subTest(name=name, text=text):
                problems, _ = self.check(ALLOWED[:1] + [(name, text)])
                self.assertEqual([p for p in problems if p.startswith(f"{name}:2: ")], problems)
                self.assertNotEqual(problems, [])


if __name__ == "__main__":
    unittest.main()
