"""What h5pack says, compared with tests/golden/help: the help of every command, and the commonest mistakes.

    H5PACK=... python3 tests/cli/help_test.py --update      # writes the golden files; read the difference before you commit it
"""

import pathlib
import re
import sys
import unittest

from support import CliTest, make_class_folder, subcommands, write_picture

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "help"
UPDATE = "--update" in sys.argv
COMMANDS = subcommands()
SOURCES = subcommands("append")

# The name of a golden file, and what is typed for it. The program's own --help-all is that of all commands, one behind
# the other.
TOPICS = {"h5pack--help": ["--help"]}
for option in ("--help", "--help-all"):
    TOPICS.update({f"{command}{option}": [command, option] for command in COMMANDS})
    TOPICS.update({f"append-{source}{option}": ["append", "train.h5", source, option] for source in SOURCES})

MISTAKES = (
    [],
    ["strem", "train.h5"],
    ["stream", "train.h5", "--bacth", "64"],
    ["folder", "photos"],
    ["folder", "photos", "-o", "train.h5"],
    ["folder", "mixed", "-o", "new.h5"],
    ["folder", "absent", "-o", "new.h5"],
    ["folder", "damaged", "-o", "new.h5"],
    ["folder", "photos", "-o", "new.h5", "--resize", "big"],
    ["folder", "empty", "-o", "new.h5"],
    ["stream", "absent.h5"],
    ["stream", "photos"],
    ["stream", "photos/cat/000.jpg"],
    ["stream", "train.h5", "--memory-budget", "64KiB"],
    ["stream", "train.h5", "--labels", "bird"],
    ["repack", "train.h5", "-o", "train.h5", "--force"],
    ["csv", "list.csv", "-o", "new.h5"],
)


def normal(text):
    """Without what versions of CLI11 write differently: capitals of headings and empty lines."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(line.lower() if re.fullmatch(r"[A-Za-z]+:", line) else line for line in lines) + "\n"


class HelpTest(CliTest):
    maxDiff = None

    def compare(self, name, text):
        path = GOLDEN / name
        if UPDATE:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.assertEqual(normal(text), normal(path.read_text()), f"{path} differs")

    def test_help(self):
        for name, arguments in TOPICS.items():
            with self.subTest(name):
                done = self.run_h5pack(*arguments)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                # The default of one option is half of this machine's memory, if that is less.
                is_tune = arguments[0] == "tune"
                shown = re.sub(r"\[\d+\.\d GiB\]", "[4.0 GiB]", done.stdout) if is_tune else done.stdout
                self.compare(f"{name}.txt", shown)
                for line in shown.splitlines():
                    self.assertLessEqual(len(line.rstrip()), 80, line)

    def test_every_golden_file_is_of_a_command(self):
        self.assertEqual({path.name for path in GOLDEN.iterdir()}, {"mistakes.txt", *(f"{name}.txt" for name in TOPICS)})

    def test_mistakes(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 2)
        make_class_folder(self.dir / "mixed", ["cat"], 1)
        write_picture(self.dir / "mixed" / "cat" / "wide.jpg", 7, 32, 48)
        make_class_folder(self.dir / "damaged", ["cat"], 2)
        (self.dir / "damaged" / "cat" / "001.jpg").write_bytes(b"no image")
        (self.dir / "empty").mkdir()
        (self.dir / "list.csv").write_text("file,class\nphotos/cat/000.jpg,cat\nphotos/cat/009.jpg,cat\n")
        self.h5pack("folder", "photos", "-o", "train.h5")
        said = []
        for arguments in MISTAKES:
            done = self.run_h5pack(*arguments)
            self.assertEqual(done.stdout, "", arguments)
            # Which words libhdf5 finds is up to its version; so is the size of one file.
            stderr = re.sub(r"libhdf5: [^);]*", "libhdf5: ...", done.stderr) if arguments else "(the help)\n"
            said.append(" ".join(["$ h5pack", *arguments]) + "\n" + stderr + f"exit code {done.returncode}\n")
        self.compare("mistakes.txt", "\n".join(said))


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--update"])
