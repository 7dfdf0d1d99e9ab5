"""Shows that the committed figures are those that draw.py makes of bench/RESULTS.md, and fit to be shown by a code host.
Needs nothing but Python 3.9."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
SVG = "{http://www.w3.org/2000/svg}"
MAX_BYTES = 100_000
# As an image 800 px wide. Smaller text cannot be read on a phone.
SHOWN_WIDTH, MIN_FONT = 800, 12


def figures(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.svg"))}


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, HERE / "draw.py", folder], check=True)
            cls.drawn = figures(pathlib.Path(folder))
        cls.committed = figures(HERE)

    def test_committed_files_are_what_is_drawn(self):
        # Nothing draws the diagram: it has no data.
        self.assertEqual(sorted(self.committed), sorted([*self.drawn, "how-it-works.svg"]))
        for name, drawn in self.drawn.items():
            self.assertTrue(self.committed[name] == drawn, f"{name} is out of date: run bench/charts/draw.py")

    def test_files_are_small(self):
        for name, drawn in self.committed.items():
            self.assertLess(len(drawn), MAX_BYTES, name)

    def test_files_are_svg_with_a_title_and_a_description(self):
        for name, drawn in self.committed.items():
            root = ElementTree.fromstring(drawn)
            self.assertEqual(root.tag, SVG + "svg", name)
            for tag in "title", "desc":
                self.assertTrue(root.find(SVG + tag).text, f"{name}: {tag}")

    def test_files_need_nothing_else(self):
        for name, drawn in self.committed.items():
            for word in b"<script", b"href", b"url(", b"@import", b"<image", b"<foreignObject":
                self.assertNotIn(word, drawn, name)

    def test_text_is_large_enough(self):
        for name, drawn in self.committed.items():
            root = ElementTree.fromstring(drawn)
            scale = SHOWN_WIDTH / float(root.get("width"))
            for text in root.iter(SVG + "text"):
                self.assertGreaterEqual(scale * float(text.get("font-size")), MIN_FONT, f"{name}: {text.text}")
