"""h5pack append to encoded images: the bytes of the old file, then those of the source."""

import unittest

from support import CliTest, make_class_folder, write_picture


class EncodedAppendTest(CliTest):
    def setUp(self):
        super().setUp()
        make_class_folder(self.dir / "one", ["cat", "dog", "eel"], 5, height=24, width=20)
        write_picture(self.dir / "one" / "cat" / "wide.png", 50, 11, 70)
        make_class_folder(self.dir / "two", ["cat", "eel"], 3, height=31, width=17, first_seed=100)
        write_picture(self.dir / "two" / "eel" / "tall.webp", 60, 45, 9, lossless=True)
        self.h5pack("folder", "one", "-o", "old.h5", "--store", "encoded", "--seed", 3)
        self.append = ["append", "old.h5", "folder", "two", "-o", "new.h5"]

    def test_complete_files(self):
        self.h5pack(*self.append)
        self.assertIn("complete already, 23 images",
                      self.h5pack(*self.append, "--resume"))


if __name__ == "__main__":
    unittest.main()
