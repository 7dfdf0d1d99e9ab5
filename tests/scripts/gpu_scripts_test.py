"""bench/gpu/run.sh and fetch-deps.sh in a copied tree, with programs that only pretend: what they are asked for, what becomes
of failures, and how parts of a run make one page. No GPU is needed, and nothing is built.

    gpu_scripts_test.py BENCH_GPU_FOLDER
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPTS = pathlib.Path(sys.argv[1])
PARTS = ["tests", "figures", "trainers", "sanitizers"]

# Writes down its arguments; configures nothing, and builds scripts. $BROKEN names what fails.
CMAKE = '''#!/bin/bash
[[ $1 == --version ]] && { echo "cmake version 3.99"; exit; }
echo "$*" >>"$FAKE/cmake.log"
if [[ $BROKEN == cmake ]]; then
  echo "CMake Error at $PWD/CMakeLists.txt:1 in $HOME/somewhere:"
  echo "  no compiler for $FAKE_OUT/logs"
  exit 1
fi
if [[ $1 == --build && $* != *chunkio-train* ]]; then  # the trainers are built while the tests run
  mkdir -p "$2/tests" "$2/bench"
  cp "$FAKE/device_test" "$FAKE/cuda_test" "$2/tests"
  cp "$FAKE/figures" "$2/bench"
fi
'''
TEST = '''#!/bin/bash
echo "[==========] Running 3 tests"
if [[ $BROKEN == skipped ]]; then echo "[  SKIPPED ] 3 tests, listed below:"; else echo "[  PASSED  ] 3 tests."; fi
'''
# Its figures are those of $FIGURES; with the name "slow" it never ends.
FIGURES = '''#!/bin/bash
echo "$*" >>"$FAKE/figures.log"
if [[ $FIGURES == slow ]]; then sleep 600; fi
while [[ $1 != --markdown ]]; do shift; done
printf '# Figures of gpu\\n\\n| copy | %s |\\n' "$FIGURES" >"$2"
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
COMPARE_LOADERS = '''import os, pathlib, sys
value = lambda name: sys.argv[sys.argv.index(name) + 1]
pathlib.Path(value("--markdown")).write_text("# Figures of the trainers\\n\\n| cifar | " + os.environ["FIGURES"] + " |\\n")
'''


def members_of_session(leader):
    """Not a process group, because timeout(1) makes one of its own."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # It ended meanwhile.
        if int(fields[3]) == leader:
            yield int(stat.parent.name)


class Scripts(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)
        self.tree = self.dir / "tree"
        gpu = self.tree / "bench" / "gpu"
        gpu.mkdir(parents=True)
        for name in ("run.sh", "fetch-deps.sh"):
            shutil.copy(SCRIPTS / name, gpu / name)
        (gpu / "compare_torch.py").write_text(COMPARE_TORCH)
        (gpu / "compare_loaders.py").write_text(COMPARE_LOADERS)
        self.fake = self.dir / "fake"
        for name, text in (("cmake", CMAKE), ("device_test", TEST), ("cuda_test", TEST), ("figures", FIGURES),
                           ("compute-sanitizer", SANITIZER), ("nvidia-smi", NVIDIA_SMI)):
            self.program(name, text)
        (self.fake / "torch.py").write_text("class utils:\n    cmake_prefix_path = '/nowhere'\n")
        self.out = self.dir / "out"
        self.home = self.dir / "home"
        self.home.mkdir()

    def program(self, name, text):
        path = self.fake / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def environment(self, broken="", figures="1.0"):
        return {**os.environ, "PATH": f"{self.fake}:{os.environ['PATH']}", "PYTHONPATH": str(self.fake), "FAKE": str(self.fake),
                "FAKE_OUT": str(self.out), "HOME": str(self.home), "BROKEN": broken, "FIGURES": figures, "JOBS": "1"}

    def script(self, name, *arguments, code=0, **options):
        result = subprocess.run(["bash", self.tree / "bench" / "gpu" / name, *map(str, arguments)], cwd=self.dir, text=True,
                                capture_output=True, check=False, timeout=120, env=self.environment(**options))
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def log(self, name):
        path = self.fake / f"{name}.log"
        return path.read_text().splitlines() if path.exists() else []


class RunTest(Scripts):
    def run_sh(self, *arguments, out=None, **options):
        """What RESULTS-gpu.md says afterwards."""
        out = out or self.out
        self.script("run.sh", "--out", out, *arguments, **options)
        text = (out / "RESULTS-gpu.md").read_text()
        for folder in (self.tree, out, self.home):
            self.assertNotIn(str(folder), text)
        self.assertEqual({path.name for path in out.iterdir()} & {"tail", "results.part", "trainers.built", "parts.merged"}, set())
        return text

    def rows(self, text):
        """(part, step, result) of the table of steps."""
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
                 if line.startswith("| ") and line.count("|") == 5]
        return [(row[0], row[1], row[2]) for row in cells if row[0] in PARTS]

    def test_help_and_wrong_options(self):
        usage = self.script("run.sh", "--help").stdout
        for word in ("--deps", "--out", "--only", "--merge", "TIME_LIMIT", "RESULTS-gpu.md"):
            self.assertIn(word, usage)
        self.assertNotIn("set -e", usage)
        for arguments in (["--wrong"], ["--deps"], ["--out"], ["--only"], ["--only", ""], ["--merge"], ["folder"]):
            result = self.script("run.sh", *arguments, code=2)
            self.assertEqual((result.stdout, result.stderr), ("", usage), arguments)
        empty = self.dir / "empty"
        empty.mkdir()
        for arguments, words in ((["--deps", self.dir / "none"], ["no folder", "none", "fetch-deps.sh"]),
                                 (["--only", "tests,figs"], ["'figs'", "tests figures trainers sanitizers"]),
                                 (["--merge", self.dir / "none"], ["no parts in", "none", "--out"]),
                                 (["--merge", empty], ["no parts in", "empty"]),
                                 (["--merge", empty, "--only", "tests"], ["--merge", "--out alone"])):
            error = self.script("run.sh", "--out", self.out, *arguments, code=2).stderr
            self.assertEqual(len(error.splitlines()), 1, error)
            for word in words:
                self.assertIn(word, error)
        # Nothing was begun.
        self.assertEqual(self.log("cmake"), [])
        self.assertFalse(self.out.exists())
        self.assertEqual([path.name for path in self.tree.iterdir()], ["bench"])

    def test_a_build_that_fails(self):
        text = self.run_sh(code=1, broken="cmake")
        self.assertEqual(self.rows(text), [("tests", "configure", "FAILED: exit code 1")])
        self.assertIn("No figures were taken.", text)
        self.assertIn("No trainer was measured.", text)
        self.assertIn("    CMake Error at CMakeLists.txt:1 in ~/somewhere:\n      no compiler for logs\n", text)
        self.assertIn("Pretended GPU, 1 MiB, driver 999.1; ", text)
        self.assertFalse((self.tree / "bench" / "RESULTS-gpu.md").exists())

    def test_a_whole_run(self):
        text = self.run_sh(figures="2.5")
        self.assertEqual([row[:2] for row in self.rows(text)], [
            ("tests", "configure"), ("tests", "build"), ("tests", "tests with a fake GPU"), ("tests", "tests on the GPU"),
            ("tests", "compute-sanitizer memcheck"), ("figures", "PyTorch"), ("figures", "figures"),
            ("trainers", "configure trainers"), ("trainers", "build trainers"), ("trainers", "trainers"),
            ("sanitizers", "compute-sanitizer racecheck"), ("sanitizers", "compute-sanitizer synccheck"),
            ("sanitizers", "compute-sanitizer initcheck")])
        self.assertEqual({row[2] for row in self.rows(text)}, {"passed", "passed (3 passed)", "passed (1 passed)"})
        self.assertIn("\n- tests, figures, trainers, sanitizers: 20", text)
        self.assertIn("# Figures of gpu\n\n| copy | 2.5 |\n", text)
        self.assertIn("# Figures of the trainers\n\n| cifar | 2.5 |\n", text)
        self.assertRegex(self.log("figures")[0], "^gpu --torch ")
        self.assertTrue((self.out / "torch.json").exists())

    def test_failures_are_reported_and_the_others_go_on(self):
        rows = dict(row[1:] for row in self.rows(self.run_sh(code=1, broken="skipped")))
        self.assertEqual(rows["tests on the GPU"], "SKIPPED (3 skipped)")
        self.assertEqual(rows["tests with a fake GPU"], "passed (3 skipped)")
        self.assertEqual(rows["compute-sanitizer initcheck"], "passed (1 passed)")
        text = self.run_sh(code=1, broken="figures")
        self.assertEqual(dict(row[1:] for row in self.rows(text))["figures"], "FAILED: exit code 1")
        self.assertIn("The end of what `figures` wrote:", text)
        self.assertIn("| copy | 1.0 |", text)

    def test_no_time(self):
        result = subprocess.run(["bash", self.tree / "bench/gpu/run.sh", "--out", self.out], text=True, capture_output=True,
                                check=False, timeout=60, env={**self.environment(), "TIME_LIMIT": "0"})
        self.assertEqual(result.returncode, 1)
        self.assertEqual(self.log("cmake"), [])
        self.assertIn("no time was left", (self.out / "RESULTS-gpu.md").read_text())

    def test_parts_one_after_the_other(self):
        text = self.run_sh("--only", "tests")
        self.assertEqual({row[0] for row in self.rows(text)}, {"tests"})
        self.assertIn("No figures were taken.", text)
        self.assertEqual([line.split("--target ")[1] for line in self.log("cmake") if "--target" in line], ["cuda_test device_test"])
        before = [row for row in self.rows(text) if row[0] == "tests"]

        text = self.run_sh("--only", "figures,sanitizers", figures="3.5")
        self.assertIn("| copy | 3.5 |", text)
        self.assertEqual([row for row in self.rows(text) if row[0] == "tests"], before)
        self.assertEqual({row[0] for row in self.rows(text)}, {"tests", "figures", "sanitizers"})
        self.assertEqual([row[1] for row in self.rows(text) if row[0] == "figures"], ["configure", "build", "PyTorch", "figures"])
        # Once more: in the place of what was there.
        again = self.run_sh("--only", "figures", figures="4.5")
        self.assertNotIn("3.5", again)
        self.assertIn("| copy | 4.5 |", again)
        self.assertEqual(len(self.rows(again)), len(self.rows(text)))
        # And everything: nothing of before is left.
        self.assertNotIn("4.5", self.run_sh(figures="5.5"))

    def test_parts_of_several_runs_make_one_page(self):
        a, b, c = (self.dir / name for name in "abc")
        self.run_sh("--only", "tests,figures", out=a, figures="6.5")
        self.run_sh("--only", "figures", out=b, figures="7.5")
        self.run_sh("--only", "trainers", out=c, figures="8.5", code=0)
        (self.fake / "cmake.log").unlink()
        text = self.run_sh("--merge", a, "--merge", b, "--merge", c)
        self.assertEqual(self.log("cmake"), [])
        self.assertEqual([row[0] for row in self.rows(text)], ["tests"] * 5 + ["figures"] * 4 + ["trainers"] * 5)
        self.assertIn("| copy | 7.5 |", text)
        self.assertNotIn("6.5", text)
        self.assertIn("| cifar | 8.5 |", text)
        # The last one counts, whatever was in the folder; one may be merged with itself.
        text = self.run_sh("--merge", b, "--merge", a)
        self.assertIn("| copy | 6.5 |", text)
        self.assertIn("No trainer was measured.", text)
        self.assertEqual(self.run_sh("--merge", self.out), text)
        # Runs on other machines are told apart.
        self.program("nvidia-smi", NVIDIA_SMI.replace("Pretended", "Another"))
        self.run_sh("--only", "figures", out=b)
        text = self.run_sh("--merge", a, "--merge", b)
        self.assertRegex(text, r"\n- tests: \S+; Pretended GPU.*\n- figures: \S+; Another GPU")

    def test_what_ends_a_run_leaves_what_was_done(self):
        process = subprocess.Popen(["bash", self.tree / "bench/gpu/run.sh", "--out", self.out], env=self.environment(figures="slow"),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 60
        while not self.log("figures") and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in members_of_session(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait(timeout=60)
        text = (self.out / "RESULTS-gpu.md").read_text()
        rows = dict(row[1:] for row in self.rows(text))
        self.assertEqual(rows["tests on the GPU"], "passed (3 passed)")
        self.assertEqual(rows["figures"], "FAILED: the run ended before it did")
        self.assertIn("No figures were taken.", text)
        # Also after another part was run.
        text = self.run_sh("--only", "sanitizers")
        self.assertEqual(dict(row[1:] for row in self.rows(text))["figures"], "FAILED: the run ended before it did")
        text = self.run_sh("--only", "figures,trainers,sanitizers", figures="9.5")
        self.assertIn("| copy | 9.5 |", text)
        self.assertNotIn("FAILED", text)
        self.assertEqual({row[0] for row in self.rows(text)}, set(PARTS))


class FetchDepsTest(Scripts):
    def test_help_and_wrong_options(self):
        self.assertIn("fetch-deps.sh FOLDER", self.script("fetch-deps.sh", "--help").stdout)
        for arguments in ([], [""], ["--wrong"], ["a", "b"]):
            result = self.script("fetch-deps.sh", *arguments, code=2)
            self.assertEqual(result.stdout, "")
            self.assertRegex(result.stderr, r"^usage: .*fetch-deps.sh FOLDER\n$")

    def test_a_machine_that_cannot_fetch(self):
        # No package lists at all, then some that lead nowhere.
        for apt_cache, words in (("#!/bin/bash\n", "no package lists; run apt-get update first"),
                                 ("#!/bin/bash\nprintf 'Package: bash\\nEssential: yes\\n\\n'\n", "apt-get: E: no such package")):
            self.program("apt-cache", apt_cache)
            self.program("apt-get", "#!/bin/bash\necho 'E: no such package' >&2\nexit 100\n")
            self.program("dpkg", "#!/bin/bash\n")
            folder = self.dir / "packages"
            result = self.script("fetch-deps.sh", folder, code=1)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertTrue(result.stderr.startswith("fetch-deps.sh: "), result.stderr)
            self.assertIn(words, result.stderr)
            self.assertEqual(list(folder.iterdir()), [])

    def test_a_folder_that_cannot_be_made(self):
        for name in ("apt-cache", "apt-get", "dpkg"):
            self.program(name, "#!/bin/bash\n")
        (self.dir / "file").write_text("")
        error = self.script("fetch-deps.sh", self.dir / "file" / "packages", code=1).stderr
        self.assertIn("fetch-deps.sh: cannot make the folder", error)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
