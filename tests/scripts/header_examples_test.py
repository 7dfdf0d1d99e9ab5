"""Shows that header_examples.py takes the example of a header, and refuses a header without one."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import header_examples

INDENTED_LATER = "/// What it is.\n///\n/// More.\n#pragma once\n///     int later;\n"


class HeaderExamples(unittest.TestCase):
    def test_first_indented_block_of_the_leading_comment(self):
        text = "/// What it is.\n///\n///     if (a) {\n///       b();\n///     }\n///\n/// More.\n///\n///     c();\n#pragma once\n"
        self.assertEqual(header_examples.example_of(text), (3, "if (a) {\n  b();\n}\n"))

    def test_other_comments_do_not_count(self):
        self.assertIsNone(header_examples.example_of(INDENTED_LATER))
        self.assertIsNone(header_examples.example_of("#pragma once\n"))

    def test_headers_without_an_example_are_named(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            (folder / "good.hpp").write_text("/// Good.\n///\n///     good();\n")
            (folder / "bad.hpp").write_text(INDENTED_LATER)
            command = [sys.executable, header_examples.__file__, folder / "out.cpp", folder, folder / "good.hpp"]
            self.assertEqual(subprocess.run(command, check=False).returncode, 0)
            self.assertIn("void good_hpp() {", (folder / "out.cpp").read_text())
            done = subprocess.run([*command, folder / "bad.hpp"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("bad.hpp has no example", done.stderr)
            self.assertNotIn("good.hpp", done.stderr)
