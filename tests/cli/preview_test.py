"""h5pack preview: the sheet, as far as a program can judge it."""


import numpy as np
from PIL import Image

import sources
from support import CliTest, picture, write_picture


def find_enlarged(sheet, original, factor):
    """How often `original`, each pixel a square of `factor`, is on the sheet."""
    enlarged = original.repeat(factor, axis=0).repeat(factor, axis=1)
    height, width = enlarged.shape[:2]
    corner = (sheet == enlarged[0, 0]).all(axis=-1)
    found = 0
    for y, x in zip(*np.nonzero(corner)):
        found += np.array_equal(sheet[y:y + height, x:x + width], enlarged)
    return found


class PreviewTest(CliTest):
    def sheet(self, name="sheet.png"):
        with Image.open(self.dir / name) as image:
            return np.asarray(image.convert("RGB"))

    def test_every_class_equally_often_and_pixels_unchanged(self):
        for label, name in enumerate(("cat", "dog", "emu")):
            for i in range(2 if label else 30):
                write_picture(self.dir / "photos" / name / f"{i}.png", 100 * label + i)
        self.h5pack("folder", "photos", "-o", "photos.h5")
        report, = self.h5pack_json("preview", "photos.h5", "-o", "sheet.png", "--grid-rows", 2)
        self.assertEqual((report["images"], report["rows"], report["columns"]), (6, 2, 3))
        sheet = self.sheet()
        self.assertEqual(sheet.shape, (report["height"], report["width"], 3))
        # 32 pixels become 96, each three times as large; all dogs and emus are there, and two cats.
        for seed in (100, 101, 200, 201):
            self.assertEqual(find_enlarged(sheet, picture(seed), 3), 1)
        self.assertEqual(sum(find_enlarged(sheet, picture(seed), 3) for seed in range(30)), 2)
        self.assertTrue((sheet[:5] == 255).all() and (sheet[:, -5:] == 255).all(), "margins")
        self.assertLess(sheet.min(), 100, "the title is missing")

    def test_seed_chooses(self):
        self.pack_photos(per_class=30)
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            self.h5pack("preview", "photos.h5", "-o", f"{name}.png", "--seed", seed)
        contents = [(self.dir / f"{name}.png").read_bytes() for name in "abc"]
        self.assertEqual(contents[0], contents[1])
        self.assertNotEqual(contents[0], contents[2])

    def test_all_kinds_of_files(self):
        sources.write_celeba(self.dir / "celeba", 9, size=(109, 89), partition=False)
        self.h5pack("celeba", "celeba", "-o", "celeba-packed")
        for channels in (1, 2, 3, 4):
            self.write_h5(f"nhwc{channels}.h5", images=np.zeros((5, 20, 30, channels), np.uint8))
        self.write_h5("nchw.h5", images=picture(1).transpose(2, 0, 1)[None], labels=np.array([12345678901]))
        self.write_h5("large.h5", images=picture(1, 700, 900)[None])
        files = ["celeba-packed/train.h5", "nchw.h5", "large.h5"]
        for name in files + [f"nhwc{channels}.h5" for channels in (1, 2, 3, 4)]:
            with self.subTest(name):
                layout = ["--layout", "nhwc"] if name.startswith("nhwc") else []
                for sheet in ("sheet.png", "sheet.jpg"):
                    self.h5pack("preview", name, "-o", sheet, "--force", *layout)
                    self.assertGreater(self.sheet(sheet).shape[0], 20)
        self.h5pack("preview", "nchw.h5", "-o", "sheet.png", "--force")
        self.assertEqual(find_enlarged(self.sheet(), picture(1), 3), 1)

    def test_more_cells_than_pictures(self):
        self.pack_photos(per_class=2)
        report, = self.h5pack_json("preview", "photos.h5", "-o", "sheet.png", "--grid-rows", 9, "--grid-columns", 9)
        self.assertEqual((report["images"], report["rows"], report["columns"]), (4, 1, 4))
