"""Completions and manual pages against the parser: every option of every command is in each of them."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

from support import H5PACK, CliTest, subcommands

REFERENCE = pathlib.Path(H5PACK).parent / "reference"
COMMANDS = subcommands()


def options_of(help_text):
    """Each option of --help-all, as the list of its spellings."""
    return [words.split(",") for words in re.findall(r"(?m)^ {2,4}(-[\w,-]+)", help_text)]


class ReferenceTest(CliTest):
    def complete(self, *words):
        """What bash offers behind `h5pack WORDS`; the last word is the one that is being typed."""
        script = 'source "$1"; shift; COMP_WORDS=(h5pack "$@"); COMP_CWORD=$#; _h5pack; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", REFERENCE / "h5pack.bash", *words], cwd=self.dir,
                              capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_offers_commands(self):
        self.assertLessEqual(set(COMMANDS), set(self.complete("")))
        self.assertEqual(self.complete("re"), ["repack"])
        self.assertEqual(self.complete("--json", "re"), ["repack"])

    def test_bash_offers_every_option(self):
        for command in COMMANDS:
            everything = self.h5pack(command, "--help-all")
            with self.subTest(command):
                offered = set(self.complete(command, "-"))
                own = everything.split("\nSubcommands:")[0] if command == "append" else everything
                for spellings in options_of(own):
                    self.assertLessEqual(set(spellings), offered)
                self.assertIn("--json", offered)
                self.assertTrue(all(word.startswith("-") for word in offered), offered)

    def test_bash_offers_the_values_of_an_option(self):
        self.assertEqual(self.complete("stream", "x.h5", "--source", ""), ["auto", "mapped", "scatter", "direct", "hdf5"])
        self.assertEqual(self.complete("stream", "x.h5", "--source", "=", "s"), ["scatter"])
        self.assertEqual(self.complete("repack", "x.h5", "--order", "s"), ["stored", "source", "shuffled"])
        self.assertEqual(self.complete("tune", "x.h5", "--disk", "n"), ["nvme", "nfs"])
        self.assertEqual(self.complete("stream", "x.h5", "--batch", ""), [])
        # Files are left to bash itself.
        self.assertEqual(self.complete("stream", ""), [])
        self.assertEqual(self.complete("folder", "photos", "-o", ""), [])

    def test_bash_knows_the_commands_of_append(self):
        self.assertLessEqual({"--images", "folder", "csv"}, set(self.complete("append", "old.h5", "-") +
                                                                  self.complete("append", "-") + ["folder", "csv"]))
        offered = self.complete("append", "old.h5", "csv", "more.csv", "--")
        self.assertLessEqual({"--path-column", "--split", "--images", "--json"}, set(offered))
        self.assertNotIn("--shard", offered)
        self.assertEqual(self.complete("append", "old.h5", "folder", "d", "--order", ""), ["stored", "shuffled"])

    def test_zsh_and_fish_know_every_option(self):
        zsh, fish = ((REFERENCE / name).read_text() for name in ("_h5pack", "h5pack.fish"))
        for command in COMMANDS:
            with self.subTest(command):
                function = zsh[zsh.index(f"\n_h5pack_{command}() {{"):]
                function = function[:function.index("\n}\n")]
                for spellings in options_of(self.h5pack(command, "--help-all").split("\nSubcommands:")[0]):
                    for spelling in spellings:
                        self.assertRegex(function, rf"'{spelling}=?\[")
                    long = spellings[-1][2:]
                    self.assertRegex(fish, rf"(?m)^complete -c h5pack( -n '__fish_seen_subcommand_from {command}[ ;'].*)?"
                                           rf".* -l {long} ")

    def test_each_shell_reads_its_file(self):
        for shell, name, check in (("bash", "h5pack.bash", "-n"), ("zsh", "_h5pack", "-n"), ("fish", "h5pack.fish", "-n")):
            path = shutil.which(shell)
            with self.subTest(shell):
                if path is None:
                    continue  # bash is everywhere, so one is always read
                done = subprocess.run([path, check, REFERENCE / name], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_manual_pages_hold_every_option(self):
        self.assertEqual({page.name for page in REFERENCE.glob("*.1")},
                         {"h5pack.1", *(f"h5pack-{command}.1" for command in COMMANDS)})
        for command in COMMANDS:
            with self.subTest(command):
                page = (REFERENCE / f"h5pack-{command}.1").read_text().replace("\\-", "-")
                everything = self.h5pack(command, "--help-all")
                for spellings in options_of(everything):
                    if spellings[-1] in ("--help", "--help-all"):
                        continue
                    for spelling in spellings:
                        self.assertIn(f"\\fB{spelling}\\fR", page)
                for example in re.findall(r"(?m)^  (h5pack .*)$", everything.split("Usage:")[0]):
                    self.assertIn(example.replace("\\", "\\e"), page)
        whole = (REFERENCE / "h5pack.1").read_text().replace("\\-", "-")
        for command in COMMANDS:
            self.assertIn(f"\\fBh5pack-{command}\\fR(1)", whole)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_manual_pages_have_no_warnings(self):
        for page in sorted(REFERENCE.glob("*.1")):
            with self.subTest(page.name):
                done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True,
                                      env={**os.environ, "LC_ALL": "C.UTF-8"})
                self.assertEqual((done.returncode, done.stderr), (0, ""))
