"""bench/gpu/run.sh in a copied tree, with programs that only pretend: what they are asked for, and what becomes of
failures. No GPU is needed, and nothing is built."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).parents[2] / "bench/gpu"

# Writes down its arguments; configures nothing, and builds scripts. $BROKEN names what fails.
CMAKE = '''#!/bin/bash
[[ $1 == --version ]] && { echo "cmake version 3.99"; exit; }
echo "$*" >>"$FAKE/cmake.log"
[[ $BROKEN == cmake ]] && exit 1
if [[ $1 == --build ]]; then
  mkdir -p "$2/tests" "$2/bench"
  cp "$FAKE/cuda_test" "$2/tests"
  cp "$FAKE/figures" "$2/bench"
fi
'''
TEST = '''#!/bin/bash
echo "[==========] Running 3 tests"
if [[ $BROKEN == skipped ]]; then echo "[  SKIPPED ] 3 tests, listed below:"; else echo "[  PASSED  ] 3 tests."; fi
'''
# Keeps the page as it is while figures are taken.
FIGURES = '''#!/bin/bash
echo "$*" >>"$FAKE/figures.log"
cp "$FAKE_OUT/RESULTS-gpu.md" "$FAKE/before.md"
while [[ $1 != --markdown ]]; do shift; done
printf '# Figures of gpu\\n\\n| copy |\\n' >"$2"
[[ $BROKEN != figures ]]
'''
SANITIZER = '''#!/bin/bash
echo "[  PASSED  ] 1 test."
'''
NVIDIA_SMI = '''#!/bin/bash
case $1 in *driver*) echo 999.1 ;; *) echo "Pretended GPU, 1 MiB" ;; esac
'''
COMPARE_TORCH = '''import pathlib, sys
pathlib.Path(sys.argv[sys.argv.index("--json") + 1]).write_text("{}")
'''
COMPARE_LOADERS = '''import pathlib, sys
pathlib.Path(sys.argv[sys.argv.index("--markdown") + 1]).write_text("# Figures of the trainers\\n")
'''


class RunTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)
        self.tree = self.dir / "tree"
        gpu = self.tree / "bench" / "gpu"
        gpu.mkdir(parents=True)
        shutil.copy(SCRIPTS / "run.sh", gpu)
        (gpu / "compare_torch.py").write_text(COMPARE_TORCH)
        (gpu / "compare_loaders.py").write_text(COMPARE_LOADERS)
        (gpu / "compare_training.py").write_text(COMPARE_LOADERS.replace("the trainers", "training"))
        self.fake = self.dir / "fake"
        for name, text in (("cmake", CMAKE), ("cuda_test", TEST), ("figures", FIGURES),
                           ("compute-sanitizer", SANITIZER), ("nvidia-smi", NVIDIA_SMI)):
            path = self.fake / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        for module in ("nanobind", "h5py", "pynvml", "pytest"):
            (self.fake / f"{module}.py").write_text("")
        (self.fake / "torch.py").write_text("class utils:\n    cmake_prefix_path = '/nowhere'\n")
        self.out = self.dir / "out"

    def script(self, *arguments, code=0, broken="", time_limit="540"):
        environment = {**os.environ, "PATH": f"{self.fake}:{os.environ['PATH']}", "PYTHONPATH": str(self.fake), "JOBS": "1",
                       "FAKE": str(self.fake), "FAKE_OUT": str(self.out), "BROKEN": broken, "TIME_LIMIT": time_limit}
        result = subprocess.run(["bash", self.tree / "bench" / "gpu" / "run.sh", *map(str, arguments)], cwd=self.dir,
                                text=True, capture_output=True, check=False, timeout=120, env=environment)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def log(self, name):
        path = self.fake / f"{name}.log"
        return path.read_text().splitlines() if path.exists() else []

    def run_sh(self, *arguments, **options):
        """The page, and its steps with their results."""
        self.script("--out", self.out, *arguments, **options)
        text = (self.out / "RESULTS-gpu.md").read_text()
        self.assertNotIn(str(self.dir), text, "it may be committed")
        rows = [line.split("|") for line in text.splitlines() if line.count("|") == 4]
        return text, {row[1].strip(): row[2].strip() for row in rows[2:]}

    def test_help_and_wrong_options(self):
        usage = self.script("--help").stdout
        for word in ("--deps", "--out", "--only", "TIME_LIMIT", "RESULTS-gpu.md"):
            self.assertIn(word, usage)
        self.assertNotIn("set -e", usage)
        for arguments in (["--wrong"], ["--deps"], ["--out"], ["--only"], ["--only", ""], ["folder"]):
            result = self.script(*arguments, code=2)
            self.assertEqual((result.stdout, result.stderr), ("", usage), arguments)
        for arguments, words in ((["--deps", self.dir / "none"], ["no folder", "none", "fetch-deps.sh"]),
                                 (["--only", "tests,figs"], ["'figs'", "tests,figures,sanitizers,training,trainers"])):
            error = self.script("--out", self.out, *arguments, code=2).stderr
            self.assertEqual(len(error.splitlines()), 1, error)
            for word in words:
                self.assertIn(word, error)
        # Nothing was begun.
        self.assertEqual(self.log("cmake"), [])
        self.assertEqual([path.name for path in self.tree.iterdir()], ["bench"])

    def test_a_build_that_fails(self):
        text, steps = self.run_sh(code=1, broken="cmake")
        self.assertEqual(steps, {"configure": "FAILED: exit code 1"})
        self.assertIn("Pretended GPU, 1 MiB, driver 999.1; ", text)
        self.assertFalse((self.tree / "bench" / "RESULTS-gpu.md").exists())

    def test_a_whole_run(self):
        text, steps = self.run_sh()
        sanitizers = [f"compute-sanitizer {tool}" for tool in ("memcheck", "racecheck", "synccheck", "initcheck")]
        self.assertEqual(list(steps), ["configure", "build", "tests on the GPU", "tests in Python", "PyTorch", "figures",
                                       *sanitizers, "training", "configure trainers", "build trainers", "trainers"])
        self.assertEqual(set(steps.values()), {"passed", "passed (3 passed)", "passed (1 passed)"})
        self.assertTrue(text.endswith("\n# Figures of gpu\n\n| copy |\n# Figures of training\n# Figures of the trainers\n"), text)
        self.assertRegex(self.log("figures")[0], "^gpu --torch ")
        # Whatever ends a run leaves what was done.
        before = (self.fake / "before.md").read_text()
        self.assertIn("| tests on the GPU | passed (3 passed) |", before)
        self.assertNotIn("| figures |", before)

    def test_failures_are_reported_and_the_others_go_on(self):
        _, steps = self.run_sh(code=1, broken="skipped")
        self.assertEqual(steps["tests on the GPU"], "SKIPPED (3 skipped)")
        self.assertEqual(steps["compute-sanitizer initcheck"], "passed (1 passed)")
        text, steps = self.run_sh(code=1, broken="figures")
        self.assertEqual(steps["figures"], "FAILED: exit code 1")
        self.assertEqual(steps["trainers"], "passed")
        self.assertIn("| copy |", text)

    def test_no_time(self):
        _, steps = self.run_sh(code=1, time_limit="0")
        self.assertEqual(steps, {"configure": "FAILED: not done after 0 s"})
        self.assertEqual(self.log("cmake"), [])

    def test_parts(self):
        text, steps = self.run_sh("--only", "tests")
        self.assertEqual(list(steps), ["configure", "build", "tests on the GPU", "tests in Python"])
        self.assertNotIn("# Figures", text)
        self.assertEqual([line.split("--target ")[1] for line in self.log("cmake") if "--target" in line],
                         ["cuda_test chunkio_python chunkio_python_modules"])
        text, steps = self.run_sh("--only", "figures,trainers")
        self.assertEqual(list(steps), ["configure", "build", "PyTorch", "figures", "configure trainers", "build trainers",
                                       "trainers"])
