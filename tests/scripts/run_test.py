"""What tests/run.sh is made of: packages that cannot be had are no failure, and skipped tests say why."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

REPOSITORY, CTEST = pathlib.Path(__file__).parents[2], os.environ.get("CTEST", "ctest")

TESTS = r"""
add_test(passes "true")
add_test(gtest "printf" "a_test.cpp:7: Skipped\\nno CUDA device\\n\\n[  SKIPPED ] A.B (0 ms)\\n")
set_tests_properties(gtest PROPERTIES SKIP_REGULAR_EXPRESSION "[[]  SKIPPED []]")
add_test(ours "echo" "skipped: no LibTorch")
set_tests_properties(ours PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
"""


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def bash(self, script, **environment):
        return subprocess.run(["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True, check=False,
                              cwd=self.folder, env={**os.environ, **environment})

    def run_tests(self, tests):
        (self.folder / "CTestTestfile.cmake").write_text(tests, encoding="utf-8")
        return self.bash(f"'{CTEST}' --output-junit report.xml | "
                         f"'{sys.executable}' '{REPOSITORY}/tests/scripts/skip_reasons.py' report.xml")

    def test_the_reasons_stand_before_the_summary(self):
        result = self.run_tests(TESTS)
        self.assertEqual(result.returncode, 0, result.stderr)
        before, summary = result.stdout.split("100% tests passed", 1)
        self.assertIn("Skipped:\n  gtest: no CUDA device\n  ours: no LibTorch\n", before)
        self.assertIn("Total Test time", summary)
        self.assertNotIn("no CUDA device", summary)

    def test_a_failure_stays_one_and_without_skipped_tests_the_output_is_that_of_ctest(self):
        result = self.run_tests('add_test(fails "false")\n')
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("fails (Failed)", result.stdout)
        self.assertNotIn("Skipped", result.stdout)

    def test_an_index_that_cannot_be_reached_is_no_failure(self):
        # Nothing listens there, and nothing is taken from elsewhere.
        result = self.bash(
            f"set -e; source '{REPOSITORY}/samples/install_packages.sh'; try_install_wheels environment absent-package",
            PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_EXTRA_INDEX_URL="", PIP_FIND_LINKS="")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("what needs", result.stdout)
        self.assertIn("is skipped.", result.stdout)
