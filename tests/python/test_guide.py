"""The Python listings of the pages below run: those of a section one after the other, as one program.

A comment before a listing names what it needs (`<!-- needs torch h5py -->`) or why it is not run (`<!-- not run: ... -->`).
"""

import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest
import test_samples

ROOT = pathlib.Path(__file__).parent.parent.parent
PAGES = ("README.md", "libchunkio/doc/python.md", "libchunkio/doc/slow-files.md")
LISTING = re.compile(r"(?:<!-- (needs|not run:) ([^\n]*) -->\n)?```python\n(.*?)```", re.DOTALL)
SECTIONS = {
    f"{page}: {text.partition(chr(10))[0]}": LISTING.findall(text)
    for page in PAGES
    for text in (ROOT / page).read_text().split("\n## ")[1:]
}


@pytest.mark.parametrize("section", [title for title, listings in SECTIONS.items() if listings])
def test_listings_run(section, tmp_path, request):
    for name in ("train.h5", "data.h5"):
        test_samples.write(tmp_path / name, range(400))
    h5pack = request.config.getoption("--h5pack")
    test_samples.write_photos(tmp_path / "photos")
    if h5pack:
        command = [h5pack, "folder", "photos", "-o", "photos.h5", "--resize", "64", "--center-crop", "64x64"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    program, skipped = [], []
    for kind, words, listing in SECTIONS[section]:
        missing = [word for word in words.split() if kind == "needs" and not is_there(word, h5pack)]
        if kind == "not run:" or missing:
            skipped.append(words if kind == "not run:" else f"{', '.join(missing)} not installed")
        else:
            program.append(listing)
    if not program:
        pytest.skip("; ".join(skipped))
    # Worker processes of other loaders import the program again.
    path = tmp_path / "listing.py"
    path.write_text("\n".join(program))
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "RuntimeWarning" not in done.stderr, done.stderr  # which chunkio gives


def is_there(word, h5pack):
    return bool(h5pack) if word == "h5pack" else importlib.util.find_spec(word) is not None
