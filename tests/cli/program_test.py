"""The program as such: help, version, usage errors, standard streams."""

import json
import os
import pty
import resource
import shlex
import subprocess
import unittest

from support import H5PACK, CliTest, make_class_folder, subcommands

COMMANDS = subcommands()


class ProgramTest(CliTest):
    def run_on_terminal(self, *arguments, environment=None):
        """Runs h5pack with stdout and stderr on a terminal; returns what it shows there."""
        variables = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        variables.update({"TERM": "xterm"}, **(environment or {}))
        leader, follower = pty.openpty()
        process = subprocess.Popen([H5PACK, *arguments], cwd=self.dir, env=variables, stdout=follower, stderr=follower)
        os.close(follower)
        shown = b""
        while True:
            try:
                piece = os.read(leader, 4096)
            except OSError:  # how Linux says that the other side is closed
                break
            if not piece:
                break
            shown += piece
        os.close(leader)
        return process.wait(), shown.decode()

    def test_version_goes_to_stdout(self):
        lines = self.h5pack("--version").splitlines()
        self.assertRegex(lines[0], r"^h5pack \d+\.\d+\.\d+$")
        found = dict(line.split(None, 1) for line in lines[1:])
        self.assertEqual(list(found), ["HDF5", "libdeflate", "xxHash", "oneTBB", "libjpeg-turbo", "OpenCV", "CUDA", "images"])
        for name in list(found)[:6]:
            self.assertRegex(found[name], r"^\d+(\.\d+)+", name)
        self.assertRegex(found["CUDA"], r"^(none|\d+(\.\d+)+)$")
        self.assertRegex(found["images"], r"^JPEG, PNG, PNM, BMP, TIFF, WebP$")

    def test_help_begins_with_examples_that_are_command_lines(self):
        below_append = [["append", "train.h5", source] for source in subcommands("append")]
        for command in [*([command] for command in COMMANDS), *below_append]:
            with self.subTest(command):
                shown = self.h5pack(*command, "--help")
                lines = shown[shown.index("Examples:"):shown.index("Usage:")].split("\n")[1:]
                examples = [shlex.split(line) for line in lines if line]
                self.assertEqual(len(examples), 2)
                everything = self.h5pack(*command, "--help-all")
                for words in examples:
                    self.assertEqual(words[:1 + len(command)], ["h5pack", *command])
                    for option in (word for word in words if word.startswith("-") and command != ["append"]):
                        self.assertRegex(everything, rf"(?m)^  (-.,)?{option}\b|^  {option},")

    def test_without_arguments_help_is_shown(self):
        done = self.run_h5pack()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, self.h5pack("--help"))

    def test_short_options(self):
        self.pack_photos()
        self.h5pack("folder", "photos", "-o", "other.h5", "-n", "-j", "1")
        self.assertFalse((self.dir / "other.h5").exists())
        self.h5pack("folder", "photos", "-o", "photos.h5", "-f", "-j", "1")
        self.assertEqual(self.h5pack("-v"), self.h5pack("--version"))
        self.assert_refused(["folder", "photos", "-o", "other.h5", "-j", "0"], 2, ["--threads must be"], "1 or more")

    def test_misspelled_names_are_told(self):
        for arguments, problem in (
                (["stream", "x", "--shuffle=3"], "there is no option '--shuffle' (did you mean --shuffle-quality?)"),
                (["append", "x", "foldr", "y", "-o", "z"], "there is no command 'foldr' (did you mean folder?)"),
                (["stream", "x", "--zzz"], "there is no option '--zzz';")):
            with self.subTest(" ".join(arguments)):
                self.assert_refused(arguments, 2, [problem], r"\w")

    def test_old_spellings_work_with_a_warning(self):
        self.pack_photos()
        for arguments, old, new in (
                (["stream", "photos.h5", "--consume-ms", "1"], "--consume-ms", "--step-ms"),
                (["stream", "photos.h5", "--consume-ms=1"], "--consume-ms", "--step-ms"),
                (["stream", "photos.h5", "--profile", "nvme"], "--profile", "--simulate-disk"),
                (["stream", "photos.h5", "--order", "chunk_shuffled"], "--order chunk_shuffled", "--order chunk-shuffled"),
                (["stream", "photos.h5", "--verify=first_epoch"], "--verify first_epoch", "--verify first-epoch"),
                (["stream", "photos.h5", "--on-error", "raise"], "--on-error raise", "--on-error fail"),
                (["tune", "photos.h5", "--cpus", "1", "--memory", "1GiB", "--profile", "nvme"], "--cpus", "--threads"),
                (["preview", "photos.h5", "-o", "a.png", "--rows", "1"], "--rows", "--grid-rows"),
                (["folder", "photos", "-o", "a.h5", "--color", "gray"], "--color", "--channels"),
                (["csv", "no.csv", "-o", "c.h5", "--layout", "nchw"], "--layout", "--out-layout"),
                (["append", "photos.h5", "folder", "photos", "-o", "b.h5", "--order", "appended"], "--order appended",
                 "--order stored")):
            with self.subTest(" ".join(arguments)):
                done = self.run_h5pack(*arguments)
                self.assertIn(f"h5pack: warning: {old} is now {new}; version 0.3 will not know the old spelling\n",
                              done.stderr)
                self.assertEqual(done.returncode, 1 if arguments[0] == "csv" else 0, done.stderr)
        self.assertEqual(self.h5pack_json("info", "a.h5")[0]["channels"], 1)
        # Where the word means something else, and behind --, nothing is replaced.
        self.assert_refused(["repack", "photos.h5", "-o", "c.h5", "--color", "gray"], 2, ["--color"], r"\w")
        self.assertNotIn("warning", self.run_h5pack("repack", "photos.h5", "-o", "c.h5", "--layout", "nhwc").stderr)
        done = self.run_h5pack("info", "--", "--profile")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
        self.assertRegex(done.stderr, r"^h5pack: .*'?--profile'?.*No such file")
        self.assertIn("not expected", self.run_h5pack("info", "--", "photos.h5", "--quiet").stderr)

    def test_wrong_usage_is_one_line_and_exit_code_2(self):
        nonsense = [
            (["info"], "FILE"),
            (["info", "a.h5", "b.h5"], "b.h5"),
            (["stream", "a.h5", "--no-such-option"], "--no-such-option"),
            (["stream", "a.h5", "--batch", "0"], "--batch"),
            (["stream", "a.h5", "--batch", "12abc"], "--batch"),
            (["stream", "a.h5", "--batch", "99999999999999999999"], "--batch"),
            (["stream", "a.h5", "--epochs", "0"], "--epochs"),
            (["stream", "a.h5", "--seed", "-1"], "--seed"),
            (["stream", "a.h5", "--order", "sorted"], "chunk-shuffled"),
            (["stream", "a.h5", "--source", "tape"], "scatter"),
            (["stream", "a.h5", "--memory-budget", "99999999TiB"], "--memory-budget"),
            (["stream", "a.h5", "--window-bytes", "0"], "--window-bytes"),
            (["stream", "a.h5", "--step-ms", "nan"], "--step-ms"),
            (["stream", "a.h5", "--simulate-disk", "floppy"], "hdd, sata-ssd, nvme"),
            (["stream", "a.h5", "--limit-latency", "8"], "8ms"),
            (["stream", "a.h5", "--limit-queue", "-1"], "1 to 65536, or 0"),
            (["stream", "a.h5", "--layout", "hwcn"], "nchw"),
            (["stream", "a.h5", "--verify", "sometimes"], "first-epoch"),
            (["stream", "a.h5", "--on-error", "hope"], "skip"),
            (["stream", "a.h5", "--resident", "gpu"], "host"),
            (["stream", "a.h5", "--uneven", "odd"], "exact"),
            (["stream", "a.h5", "--rows", "1:1"], "--rows"),
            (["stream", "a.h5", "--labels", ","], "--labels"),
            (["stream", "a.h5", "--fields", "a,,b"], "--fields"),
            (["stream", "a.h5", "--fields", ""], "--fields"),
            (["stream", "a.h5", "--steps", "0"], "--steps"),
            (["stream", "a.h5", "--prefetch", "0"], "--prefetch"),
            (["stream", "a.h5", "--threads", "1025"], "--threads"),
            (["stream", "a.h5", "--rank", "-1"], "--rank"),
            (["stream", "a.h5", "--rank", "1"], "--world-size"),
            (["stream", "a.h5", "--rank", "4", "--world-size", "4"], "--world-size"),
            (["stream", "a.h5", "--world-size", "0"], "--world-size"),
            (["stream", "a.h5", "--lanes", "-1"], "--lanes"),
            (["stream", "a.h5", "--ranks-from-env", "--rank", "0"], "--rank"),
            (["stream", "a.h5", "--ranks-from-env", "--world-size", "2"], "--world-size"),
            (["stream", "a.h5", "--state-in", "s.json", "--batch", "2"], "--batch"),
            (["stream", "a.h5", "--state-in", "s.json", "--window-bytes", "2"], "--window-bytes"),
            (["stream", "a.h5", "--state-in", "s.json", "--lanes", "2"], "--lanes"),
            (["preview", "a.h5"], "--output"),
            (["preview", "a.h5", "-o", "a.gif"], "a.gif"),
            (["preview", "a.h5", "-o", "a.png", "--grid-rows", "0"], "--grid-rows"),
            (["folder", "photos", "-o", "a.h5", "--resize", "0x4"], "--resize"),
            (["folder", "photos", "-o", "a.h5", "--channels", "pink"], "--channels"),
            (["folder", "photos", "-o", "a.h5", "--chunk", "0"], "--chunk"),
            (["folder", "photos", "-o", "a.h5", "--chunk-bytes", "0"], "--chunk-bytes"),
            (["folder", "photos", "-o", "a.h5", "--chunk-bytes", "4", "--chunk", "3"], "--chunk"),
            (["folder", "photos", "-o", "a.h5", "--threads", "-1"], "--threads"),
            (["folder", "photos", "-o", "a.h5", "--center-crop", "9x9", "--pad", "9x9"], "--pad"),
        ]
        for arguments, name in nonsense:
            with self.subTest(" ".join(arguments)):
                self.assert_refused(arguments, 2, [name], r"\w")

    def test_the_order_of_global_options_does_not_matter(self):
        self.pack_photos()
        after = self.h5pack("info", "photos.h5", "--json")
        before = self.h5pack("--json", "info", "photos.h5")
        self.assertEqual(json.loads(before), json.loads(after))
        self.h5pack("--quiet", "stream", "photos.h5")
        self.h5pack("stream", "--quiet", "photos.h5")

    def test_quiet_leaves_stderr_empty(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 4)
        for arguments in (["folder", "photos", "-o", "photos.h5"], ["info", "photos.h5"],
                          ["stream", "photos.h5"], ["preview", "photos.h5", "-o", "sheet.png"]):
            self.assertEqual(self.run_h5pack(*arguments, "--quiet").stderr, "")

    def test_colour_only_on_terminals_without_no_color(self):
        self.pack_photos()
        self.assertNotIn("\x1b", self.h5pack("info", "photos.h5", environment={"TERM": "xterm"}))
        # An empty NO_COLOR counts as unset (no-color.org).
        for environment, coloured in (({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False),
                                      ({"TERM": "dumb"}, False)):
            code, shown = self.run_on_terminal("info", "photos.h5", environment=environment)
            self.assertEqual((code, "\x1b[1m" in shown), (0, coloured))

    def test_a_terminal_shows_a_bar(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 4)
        code, shown = self.run_on_terminal("folder", "photos", "-o", "photos.h5")
        self.assertEqual(code, 0, shown)
        self.assertIn("100% 8/8 images", shown)
        # In the end the result stands there alone.
        self.assertRegex(shown, r"100% 8/8 images[^\n]*\r\x1b\[K[^\r\n]*photos\.h5: 8 images[^\n]*\n$")

    def test_results_that_cannot_be_written_are_no_success(self):
        self.pack_photos()
        commands = (["info", "photos.h5"], ["stream", "photos.h5"], ["--version"], ["--help"],
                    ["preview", "photos.h5", "-o", "sheet.png", "--force"])
        for arguments in commands:
            with self.subTest(" ".join(arguments)):
                reader, gone = os.pipe()
                os.close(reader)
                for stdout in (os.open("/dev/full", os.O_WRONLY), gone):
                    result = self.run_h5pack(*arguments, stdout=stdout)
                    os.close(stdout)
                    self.assertEqual(result.returncode, 1, result.stderr)
                    self.assertIn("standard output", result.stderr)

    def test_a_dry_run_whose_result_was_lost_finished_nothing(self):
        make_class_folder(self.dir / "photos", ["cat"], 2)
        with open("/dev/full", "w") as full:
            dry = self.run_h5pack("folder", "photos", "-o", "out.h5", "--dry-run", "--quiet", stdout=full)
            packed = self.run_h5pack("folder", "photos", "-o", "out.h5", "--quiet", stdout=full)
        self.assertEqual((dry.returncode, packed.returncode), (1, 1))
        self.assertRegex(dry.stderr, r"standard output: No space left on device\n$")
        self.assertRegex(packed.stderr, r"standard output: No space left on device; already finished: 'out\.h5'")

    @unittest.skipIf(os.environ.get("CHUNKIO_SANITIZE"), "sanitizers look at memory through a pipe, which takes files")
    def test_too_few_open_files_are_told_as_that(self):
        self.pack_photos(output="in.h5")
        for number in range(4, 14):
            with self.subTest(number):
                limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))  # noqa: E731
                result = self.run_h5pack("repack", "in.h5", "-o", f"out{number}.h5", "--quiet", preexec_fn=limit)
                if result.returncode == 0:
                    continue
                self.assertRegex(result.stderr, r"^h5pack: [^\n]*Too many open files; raise the limit of open files "
                                                r"\(ulimit -n\)[^\n]*\n$")
                self.assertNotRegex(result.stderr, "by hand|check the path")

    def test_closed_standard_streams_do_not_reach_the_output_file(self):
        make_class_folder(self.dir / "photos", ["cat", "dog"], 4)
        shell = ["sh", "-c", f'exec "{H5PACK}" folder photos -o photos.h5 <&- >&- 2>&-']
        self.assertEqual(subprocess.run(shell, cwd=self.dir).returncode, 1)  # no result line
        self.h5pack("folder", "photos", "-o", "again.h5", "--force")
        self.h5pack("info", "photos.h5")
        first, again = (self.h5pack_json("stream", name, "--digest")[0]["pixel_digest"]
                        for name in ("photos.h5", "again.h5"))
        self.assertEqual(first, again)

    def test_names_cannot_steer_the_terminal(self):
        name = "evil\x1b[2J\nname.h5"
        message = self.assert_refused(["info", name], 1, [], r"evil")
        self.assertNotIn("\x1b", message)
        self.pack_photos(classes=["c\x1b[31mat", "dog\n"])
        shown = self.h5pack("info", "photos.h5")
        self.assertNotIn("\x1b", shown)
        self.assertIn("c\\x1b[31mat", shown)
        names = [entry["name"] for entry in self.h5pack_json("info", "photos.h5")[0]["classes"]]
        self.assertEqual(names, ["c\x1b[31mat", "dog\n"])
