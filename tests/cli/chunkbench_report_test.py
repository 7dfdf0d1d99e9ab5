"""chunkbench report: what it draws, read back from a browser, and what it refuses."""

import copy
import functools
import http.server
import json
import math
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

import browser
import make_sweep_results

CHUNKBENCH = os.environ.get("CHUNKBENCH", "chunkbench")
TIMEOUT_SECONDS = 120
MAX_BYTES = 500_000
SKIP = "no Chromium: tests/run.sh installs it where the system has a package; CHROMIUM names another"


def significant(value, digits=3):
    """As the page rounds: half away from zero, of the decimal that the double is nearest to."""
    if value == 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - (digits - 1))
    return math.floor(value / unit + 0.5) * unit


def short_si(value):
    prefixes = ["", "k", "M", "G", "T"]
    shown, step = significant(value), 0
    while shown >= 1000:
        value /= 1000
        step += 1
        shown = significant(value)
    digits = 0 if shown == 0 else max(0, 2 - math.floor(math.log10(shown) + 1e-12))
    return f"{shown:.{min(digits, 2 if step else 1)}f}{prefixes[step]}"


def size_text(size):
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    step = 0
    while size >= 1023.5:
        size /= 1024
        step += 1
    digits = max(0, 2 - math.floor(math.log10(significant(size)) + 1e-12)) if size else 0
    text = f"{size:.{digits}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + " " + units[step]


def rgb(text):
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def luminance(colour):
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    a, b = sorted((luminance(one) + 0.05, luminance(other) + 0.05))
    return b / a


def median_speed(cell):
    return cell["images_per_second"]["median"] if cell["status"] in ("measured", "pruned") else None


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="chunkbench-report-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def run_report(self, *arguments, **options):
        return subprocess.run([CHUNKBENCH, "report", *map(str, arguments)], cwd=self.dir, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_SECONDS, check=False,
                              **options)

    def write(self, results, name="results.json"):
        path = self.dir / name
        path.write_text(results if isinstance(results, str) else json.dumps(results), encoding="utf-8")
        return path

    def draw(self, results, name="page.html"):
        """The page of `results`."""
        self.write(results)
        result = self.run_report("results.json", "-o", name, "--force")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return self.dir / name


class DrawnPage(ReportTest):
    """A whole sweep, as a browser shows it."""

    @classmethod
    def setUpClass(cls):
        if browser.find() is None:
            raise unittest.SkipTest(SKIP)
        cls.results = make_sweep_results.make_results()
        folder = pathlib.Path(tempfile.mkdtemp(prefix="chunkbench-report-"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        (folder / "results.json").write_text(json.dumps(cls.results), encoding="utf-8")
        subprocess.run([CHUNKBENCH, "report", folder / "results.json", "-o", folder / "page.html"], check=True,
                       timeout=TIMEOUT_SECONDS, stdout=subprocess.DEVNULL)
        cls.page = folder / "page.html"
        cls.drawn = browser.read_back(cls.page)

    def heat_maps(self, section):
        return [heat for heat in self.drawn["heat"] if heat["section"] == section]

    def assert_lightness_follows(self, cells, less_is_better=False):
        """The better, the lighter: the darkest of what is better is not darker than what is worse."""
        shown = sorted(((cell["value"], luminance(rgb(cell["fill"]))) for cell in cells if cell["value"] is not None),
                       key=lambda pair: pair[0], reverse=less_is_better)
        self.assertGreater(len(shown), 50)
        self.assertGreater(len({fill for _, fill in shown}), 5)
        for (value, light), (better, lighter) in zip(shown, shown[1:]):
            self.assertGreaterEqual(lighter, light - 1e-9, f"{value} and {better}")

    def test_every_cell_is_drawn_once_with_its_number(self):
        maps = self.heat_maps("speed")
        cells = [cell for heat in maps for cell in heat["cells"]]
        self.assertEqual(sorted(cell["index"] for cell in cells), list(range(200)))
        for cell in cells:
            source = self.results["cells"][cell["index"]]
            speed = median_speed(source)
            self.assertEqual(cell["value"], speed)
            if speed is not None:
                self.assertEqual(cell["texts"], [short_si(speed)])
            else:
                self.assertEqual(cell["texts"], [source["status"]])
            self.assertIn(size_text(source["chunk_bytes"]), cell["title"])
            self.assertIn(size_text(source["cache_bytes"]), cell["title"])
            if source["reason"]:
                self.assertIn(source["reason"], cell["title"])

    def test_lighter_is_faster_on_one_scale(self):
        self.assert_lightness_follows([cell for heat in self.heat_maps("speed") for cell in heat["cells"]])

    def test_lighter_hits_more_and_reads_less(self):
        self.assert_lightness_follows([cell for heat in self.heat_maps("hits") for cell in heat["cells"]])
        self.assert_lightness_follows([cell for heat in self.heat_maps("amplification") for cell in heat["cells"]],
                                      less_is_better=True)

    def test_columns_are_chunk_sizes_and_rows_are_cache_sizes(self):
        for heat in self.drawn["heat"]:
            for cell in heat["cells"]:
                source = self.results["cells"][cell["index"]]
                self.assertEqual(heat["columns"][cell["column"]], size_text(source["chunk_bytes"]))
                self.assertEqual(heat["rows"][cell["row"]], size_text(source["cache_bytes"]))
            self.assertEqual(heat["columns"], [size_text(c) for c in make_sweep_results.CHUNK_BYTES])
            self.assertEqual(heat["rows"], [size_text(c) for c in reversed(make_sweep_results.CACHES)])

    def test_the_best_of_each_panel_has_the_ring(self):
        for heat in self.heat_maps("speed"):
            known = [cell for cell in heat["cells"] if cell["value"] is not None]
            best = max(known, key=lambda cell: cell["value"])
            self.assertEqual([cell["index"] for cell in heat["cells"] if cell["ring"]], [best["index"]])
            lowest = self.results["cells"][best["index"]]["images_per_second"]["min"]
            for cell in known:
                reaches = self.results["cells"][cell["index"]]["images_per_second"]["max"] >= lowest
                self.assertEqual("tie" in cell["classes"], reaches and cell is not best)

    def test_cells_without_a_speed_are_hatched(self):
        seen = set()
        for cell in (cell for heat in self.heat_maps("speed") for cell in heat["cells"]):
            status = self.results["cells"][cell["index"]]["status"]
            seen.add(status)
            self.assertEqual(cell["hatched"], status in ("failed", "skipped"))
            self.assertEqual(cell["dashed"], status == "pruned")
        self.assertEqual(seen, {"measured", "pruned", "failed", "skipped"})

    def test_hit_rates_and_amplification_show_both_numbers(self):
        for section, name in (("hits", "hit_rate"), ("amplification", "read_amplification")):
            shown = 0
            for cell in (cell for heat in self.heat_maps(section) for cell in heat["cells"]):
                values = self.results["cells"][cell["index"]][name]
                expected = values["measured"] if values["measured"] is not None else values["predicted"]
                self.assertEqual(cell["value"], expected)
                if values["measured"] is None:
                    continue
                shown += 1
                for text, value in zip(cell["texts"], (values["measured"], values["predicted"])):
                    number = text.rstrip("%×").replace(",", "")
                    factor = 1000 if number.endswith("k") else 1
                    drawn = float(number.rstrip("k")) * factor / (100 if section == "hits" else 1)
                    self.assertAlmostEqual(drawn, value, delta=max(6e-4, 0.006 * value))
            self.assertGreater(shown, 60)

    def bars(self, section):
        return [bar for bar in self.drawn["bars"] if bar["section"] == section]

    def test_bars_are_as_long_as_their_values(self):
        self.assertEqual({bar["section"] for bar in self.drawn["bars"]}, {"best", "ladder"})
        for section in ("best", "ladder"):
            bars = [bar for bar in self.bars(section) if bar["percent"] > 0]
            self.assertEqual(max(bar["percent"] for bar in bars), 100)
            widest = max(bar["value"] for bar in bars)
            for bar in bars:
                self.assertAlmostEqual(bar["percent"], 100 * bar["value"] / widest, delta=0.02)

    def test_ceilings_stand_below_the_best_cells(self):
        *cells, storage, memory = self.bars("best")
        self.assertEqual(len(cells), 8)
        medians = [ceiling["bytes_per_second"]["median"] for ceiling in self.results["ceilings"]]
        self.assertEqual([storage["value"], memory["value"]], medians)
        # The memory is far beyond, and said in words.
        self.assertEqual(memory["percent"], 0)
        self.assertIn("11.2 GB/s", memory["text"])

    def test_ladder_and_mixing_are_those_of_the_results(self):
        self.assertEqual([bar["value"] for bar in self.bars("ladder")],
                         [variant["images_per_second"]["median"] for variant in self.results["ladder"]])
        tables = {table["section"]: table for table in self.drawn["tables"]}
        self.assertEqual([row[0] for row in tables["ladder"]["rows"]],
                         [variant["variant"] for variant in self.results["ladder"]])
        shuffle = tables["shuffle"]["rows"]
        self.assertEqual([row[2] for row in shuffle], [size_text(p["window_bytes"]) for p in self.results["shuffle"]])
        self.assertEqual([row[2] for row in shuffle if row[-1]], ["256 MiB"])

    def test_the_table_has_every_cell(self):
        table = next(table for table in self.drawn["tables"] if table["section"] == "cells")
        self.assertEqual(len(table["rows"]), 200)
        speed, status = table["head"].index("images/s"), table["head"].index("status")
        for row, cell in zip(table["rows"], self.results["cells"]):
            self.assertEqual(row[status], cell["status"])
            median = cell["images_per_second"]["median"] if cell["images_per_second"] else None
            number = float(row[speed].replace(",", "")) if row[speed] else None
            self.assertEqual(number, None if median is None else round(significant(median), 6))
            self.assertIn(cell["reason"], row[-1])
        self.assertEqual({table["section"] for table in self.drawn["tables"]},
                         {"best", "cells", "ladder", "shuffle"})

    def test_the_verdict_names_the_best_cell(self):
        cells = [cell for cell in self.results["cells"] if median_speed(cell) and cell["order"] != "sequential"]
        fastest = max(cells, key=median_speed)

        def mixed(cell):
            """Chunks that a batch is drawn from."""
            if cell["order"] == "random":
                return math.inf
            return 0 if cell["source"] == "h5dread" else cell["cache_bytes"] / cell["chunk_bytes"]

        # Of those that this run cannot tell from the fastest.
        equal = [cell for cell in cells
                 if cell["images_per_second"]["max"] >= fastest["images_per_second"]["min"]]
        best = max(equal, key=lambda cell: (mixed(cell), median_speed(cell)))
        headline = self.drawn["verdict"][0]
        for text in (size_text(best["chunk_bytes"]), size_text(best["cache_bytes"]),
                     f"{significant(median_speed(best)):,.0f} images/s"):
            self.assertIn(text, headline)

    def test_circumstances_are_there(self):
        facts = dict(self.drawn["facts"])
        self.assertEqual(facts["cpu"], self.results["machine"]["cpu"])
        self.assertEqual(facts["hdf5"], "1.10.8")
        self.assertEqual(facts["batch size"], "256")
        self.assertEqual(facts["time for the files"], "2:30")
        self.assertEqual(self.drawn["notes"], self.results["options"]["notes"])
        self.assertEqual(self.drawn["title"], "chunkbench: train.h5")

    def check_legible(self, drawn):
        background = rgb(drawn["background"])
        self.assertGreaterEqual(contrast(rgb(drawn["ink"]), background), 7)
        for cell in (cell for heat in drawn["heat"] for cell in heat["cells"]):
            self.assertLessEqual(cell["overflow"], 0, cell["texts"])
            if cell["value"] is not None:
                self.assertGreaterEqual(contrast(rgb(cell["ink"]), rgb(cell["fill"])), 4.5, cell["title"])

    def test_texts_are_legible_and_fit(self):
        self.assertEqual(rgb(self.drawn["background"]), (255, 255, 255))
        self.check_legible(self.drawn)
        self.assertLessEqual(self.drawn["overflow"], 0)

    def test_dark_mode_keeps_values_and_colours_of_values(self):
        dark = browser.read_back(self.page, dark=True)
        self.assertLess(luminance(rgb(dark["background"])), 0.05)
        self.check_legible(dark)
        for light_heat, dark_heat in zip(self.drawn["heat"], dark["heat"]):
            for one, other in zip(light_heat["cells"], dark_heat["cells"]):
                self.assertEqual((one["value"], one["fill"]), (other["value"], other["fill"]))

    def test_a_narrow_window_does_not_scroll_sideways(self):
        narrow = browser.read_back(self.page, width=500)
        self.assertLessEqual(narrow["overflow"], 0)

    def test_nothing_is_fetched_and_nothing_complains(self):
        asked = []

        class Server(http.server.SimpleHTTPRequestHandler):
            def log_message(self, format, *arguments):
                asked.append(self.path)

        folder = self.page.parent
        with http.server.ThreadingHTTPServer(
                ("127.0.0.1", 0), functools.partial(Server, directory=folder)) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            _, said = browser.run(f"http://127.0.0.1:{server.server_port}/{self.page.name}", "--dump-dom")
            server.shutdown()
        self.assertEqual(asked, [f"/{self.page.name}"])
        self.assertEqual(browser.console(said), [])
        self.assertEqual(self.drawn["requests"], [])
        text = self.page.read_text(encoding="utf-8")
        self.assertIn("default-src 'none'", text)
        self.assertNotRegex(text, r"(?i)<script|<link rel=\"(?!icon)|@import|https?://|<iframe|<object|\son\w+=")

    def test_it_prints(self):
        pdf = self.dir / "page.pdf"
        browser.run(self.page, "--no-pdf-header-footer", f"--print-to-pdf={pdf}", dark=True)
        data = pdf.read_bytes()
        self.assertTrue(data.startswith(b"%PDF-"))
        # The table of all cells is on paper, too, though closed on the screen: that takes several pages more.
        pages = len(re.findall(rb"/Type\s*/Page\b", data))
        closed = self.dir / "closed.html"
        closed.write_text(self.page.read_text(encoding="utf-8").replace("<details", "<div hidden").replace(
            "</details>", "</div>"), encoding="utf-8")
        browser.run(closed, "--no-pdf-header-footer", f"--print-to-pdf={self.dir / 'closed.pdf'}")
        self.assertGreater(pages, len(re.findall(rb"/Type\s*/Page\b", (self.dir / "closed.pdf").read_bytes())) + 1)


class OtherResults(ReportTest):
    """Sweeps that are unlike others, as a browser shows them."""

    def setUp(self):
        super().setUp()
        if browser.find() is None:
            self.skipTest(SKIP)

    def test_an_interrupted_sweep_says_so(self):
        results = make_sweep_results.make_results(complete=False)
        drawn = browser.read_back(self.draw(results))
        self.assertRegex(drawn["warnings"][0], r"not complete: \d+ of 200 cells")
        statuses = {status: sum(cell["status"] == status for cell in results["cells"])
                    for status in ("pending", "measuring")}
        cells = [cell for heat in drawn["heat"] if heat["section"] == "speed" for cell in heat["cells"]]
        for status, number in statuses.items():
            self.assertGreater(number, 5)
            shown = [cell for cell in cells if status in cell["classes"]]
            self.assertEqual(len(shown), number)
            self.assertTrue(all(cell["hatched"] for cell in shown))

    def test_texts_of_the_results_never_become_markup(self):
        evil = "</title></svg></style><script>document.title='x'</script><img src=x onerror=alert(1)>\"'&\u202e<b>"
        results = make_sweep_results.make_results()
        results["created"] = evil
        results["dataset"].update(name=evil, filters=[evil])
        results["versions"] = {evil: evil}
        results["machine"] = {evil: evil, "list": [evil, 1, None, True]}
        results["options"].update(notes=[evil], throttled_device=evil,
                                  limit={"profile": evil, "bytes_per_second": 1e9})
        results["ceilings"][0]["name"] = "storage" + evil
        for variant in results["ladder"]:
            variant["variant"] = evil
        for cell in results["cells"][::7]:
            cell["reason"] = evil
        page = self.draw(results)
        drawn = browser.read_back(page)
        self.assertEqual(drawn["scripts"], 1)  # The one that reads.
        self.assertEqual(set(drawn["elements"]) & {"img", "b", "iframe"}, set())
        self.assertIn("<script>", drawn["title"])
        self.assertIn(evil.replace("\u202e", "\\xe2\\x80\\xae"), drawn["notes"])
        _, log = browser.run(page, "--dump-dom")
        self.assertEqual(browser.console(log), [])

    def test_odd_sweeps_are_drawn(self):
        whole = make_sweep_results.make_results()
        one = copy.deepcopy(whole)
        one.update(cells=one["cells"][:1], shuffle=one["shuffle"][:1], ladder=None, ceilings=[])
        none = copy.deepcopy(whole)
        none.update(cells=[], shuffle=[])
        nothing = copy.deepcopy(none)
        nothing["ladder"] = None
        pending = copy.deepcopy(whole)
        pending["complete"] = False
        for cell in pending["cells"]:
            make_sweep_results.without_numbers(cell, "pending", "")
            cell["hit_rate"] = None
        zero = copy.deepcopy(whole)
        for cell in zero["cells"]:
            for name in ("images_per_second", "bytes_per_second"):
                if cell[name]:
                    cell[name] = {"median": 0, "min": 0, "max": 0, "n": 1}
        huge = copy.deepcopy(whole)
        for cell in huge["cells"]:
            if cell["images_per_second"]:
                cell["images_per_second"] = {"median": 9.996e29, "min": 1, "max": 1e30, "n": 1}
        for name, results, maps in (("one", one, 1), ("none", none, 0), ("nothing", nothing, 0),
                                    ("pending", pending, 8), ("zero", zero, 8), ("huge", huge, 8)):
            with self.subTest(name):
                page = self.draw(results)
                self.assertNotRegex(page.read_text(encoding="utf-8"), r'="[^"]*\b(nan|inf)\b')
                drawn = browser.read_back(page)
                self.assertEqual(sum(heat["section"] == "speed" for heat in drawn["heat"]), maps)
                self.assertEqual(any(bars["section"] == "ladder" for bars in drawn["bars"]),
                                 results["ladder"] is not None)


class Command(ReportTest):
    """Without a browser: files, sizes, errors."""

    def test_a_sweep_of_200_cells_is_small_and_quick(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        page = self.draw(make_sweep_results.make_results())
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertLessEqual(page.stat().st_size, MAX_BYTES)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        limit = 10 if os.environ.get("CHUNKIO_SANITIZE") else 1
        self.assertLess(seconds, limit)

    def assert_refused(self, arguments, code, *texts, **options):
        before = {path.name: path.read_bytes() for path in self.dir.iterdir() if path.is_file()}
        result = self.run_report(*arguments, **options)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("chunkbench: "), result.stderr)
        for text in texts:
            self.assertIn(text, result.stderr)
        self.assertEqual({path.name: path.read_bytes() for path in self.dir.iterdir() if path.is_file()}, before)

    def test_an_existing_page_is_replaced_only_by_force(self):
        self.write(make_sweep_results.make_results())
        (self.dir / "page.html").write_text("mine")
        self.assert_refused(["results.json", "-o", "page.html"], 1, "page.html", "--force")
        self.assertEqual(self.run_report("results.json", "-o", "page.html", "--force").returncode, 0)
        self.assertIn("<!DOCTYPE html>", (self.dir / "page.html").read_text(encoding="utf-8"))
        self.assertEqual(sorted(path.name for path in self.dir.iterdir()), ["page.html", "results.json"])

    def test_results_are_never_replaced(self):
        self.write(make_sweep_results.make_results())
        (self.dir / "link.html").symlink_to("results.json")
        self.assert_refused(["results.json", "-o", "results.json", "--force"], 2, "results.json")
        self.assert_refused(["results.json", "-o", "link.html", "--force"], 2, "link.html")

    def test_wrong_usage(self):
        self.write(make_sweep_results.make_results())
        self.assert_refused(["results.json"], 2, "--output")
        self.assert_refused(["-o", "page.html"], 2, "RESULTS")
        self.assert_refused(["results.json", "-o", "page.html", "--colour"], 2, "--colour")
        self.assert_refused(["absent.json", "-o", "page.html"], 1, "absent.json")
        self.assert_refused([".", "-o", "page.html"], 1, "'.'")
        self.assert_refused(["results.json", "-o", "absent/page.html"], 1, "absent")
        self.assert_refused(["results.json", "-o", "."], 1, ".")

    def test_a_full_disk_leaves_nothing(self):
        self.write(make_sweep_results.make_results())

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

        self.assert_refused(["results.json", "-o", "page.html"], 1, "page.html", "space", preexec_fn=limit)

    def test_damaged_and_foreign_results_are_named(self):
        """What is wrong, and where; every single value is damaged in results_test.cpp."""
        whole = make_sweep_results.make_results()
        text = json.dumps(whole)

        def changed(change):
            results = copy.deepcopy(whole)
            change(results)
            return json.dumps(results)

        cases = [
            ("", "empty"),
            (text[:len(text) // 2], "cut off"),
            ("[]", "no object"),
            ('{"format": "fio"}', "something else"),
            (text.replace('"version": 1', '"version": 2', 1), "version 2"),
            (text.replace('"seed": 7', '"seed": 1e999', 1), "too large"),
            ("\xff" + text, "no JSON"),
            (changed(lambda r: r.pop("cells")), "cells is missing"),
            (changed(lambda r: r.update(cells=[[]] * 10_001)), "more than 10000"),
            (changed(lambda r: r["cells"][7].update(order="sorted")), "cells[7].order is none of chunk_shuffled, random"),
            (changed(lambda r: r["cells"][7].update(reason="x" * 3000)), "cells[7].reason is longer"),
            (changed(lambda r: r["cells"][7].update(images_per_second=None)), "cells[7] is measured without"),
            (changed(lambda r: r["cells"][7]["images_per_second"].update(min=1e9)), "cells[7].images_per_second has a"),
            (changed(lambda r: r["cells"][7]["rounds"][0].update(seconds=-1)), "cells[7].rounds[0].seconds is no number"),
            (changed(lambda r: r["cells"].append(r["cells"][7])), "two cells with the same settings, the second of which is cells[200]"),
            (changed(lambda r: r.update(machine={"a": {"b": 1}})), "machine has a member"),
        ]
        for results, problem in cases:
            with self.subTest(problem):
                self.write(results, "bad.json")
                self.assert_refused(["bad.json", "-o", "page.html"], 1, "bad.json", problem)
        self.write("[" * 1_000_000, "deep.json")
        self.assert_refused(["deep.json", "-o", "page.html"], 1, "deep.json")


if __name__ == "__main__":
    unittest.main()
