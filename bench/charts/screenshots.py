#!/usr/bin/env python3
"""Takes the screenshots of the documentation: a contact sheet, and the report of chunkbench in light and dark.

    bench/charts/screenshots.py BUILD [REPORT.html]   # BUILD: a build tree with h5pack and the samples, such as build/release

Writes contact-sheet.png beside this script and, of a page that `chunkbench report` drew, sweep-light.png and
sweep-dark.png. Needs Chromium and Pillow.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent


def save_small(image, name):
    """With 128 colours: a few of these are enough for a page."""
    image.convert("RGB").quantize(128).save(HERE / name, optimize=True)


def contact_sheet(build, folder):
    h5pack = build / "tools/h5pack/h5pack"
    for command in ([build / "samples/chunkio-make-pictures", "photos", "--count", "500"],
                    [h5pack, "folder", "photos/train", "-o", "train.h5", "--quiet"],
                    [h5pack, "preview", "train.h5", "-o", "sheet.png", "--grid-rows", "3", "--grid-columns", "8"]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    save_small(Image.open(folder / "sheet.png"), "contact-sheet.png")


def sweep(folder, report):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("screenshots.py: install Chromium")
    for mode, scheme in (("light", 1), ("dark", 0)):
        shot = folder / f"{mode}.png"
        subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=900,1000",
                        f"--blink-settings=preferredColorScheme={scheme}", f"--user-data-dir={folder / 'profile'}",
                        f"--screenshot={shot}", report.as_uri()], check=True, capture_output=True)
        save_small(Image.open(shot), f"sweep-{mode}.png")


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as name:
        contact_sheet(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(name))
        if len(sys.argv) == 3:
            sweep(pathlib.Path(name), pathlib.Path(sys.argv[2]).resolve())


if __name__ == "__main__":
    main()
