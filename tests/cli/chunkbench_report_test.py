"""chunkbench report: what it draws, and what it refuses. The page is XML, too, so most is read from it as it is; what
only a layout shows takes a browser."""

import copy
import csv
import io
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest
from xml.etree import ElementTree

import make_sweep_results
from support import CliTest, tree

CHUNKBENCH = os.environ.get("CHUNKBENCH", "chunkbench")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
TIMEOUT_SECONDS = 240
UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "%": 0.01, "×": 1, "k×": 1e3}


def number(text):
    """Of "41.2k", "97.3%", "243 KiB"."""
    digits, unit = re.fullmatch(r"[<>]?([\d.,]+) ?([kKMGiB%×]*)", text).groups()
    return float(digits.replace(",", "")) * UNITS[unit]


def luminance(colour):
    """0 to 1, as WCAG 2 defines it, of #3b528b or #000."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = [int(digits[i:i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def median_speed(cell):
    return cell["images_per_second"]["median"] if cell["status"] in ("measured", "pruned") else None


class Page:
    def __init__(self, path):
        self.root = ElementTree.fromstring(path.read_text(encoding="utf-8").removeprefix("<!DOCTYPE html>"))

    def texts(self, way):
        return ["".join(element.itertext()) for element in self.root.iterfind(way)]

    def table(self, section):
        """Titles, and rows of texts."""
        table = self.root.find(f".//section[@id='{section}']//table")
        rows = [["".join(field.itertext()) for field in row] for row in table.iter("tr")]
        return rows[0], rows[1:]

    def bars(self, section):
        """Percent of the longest, of each row."""
        rows = self.root.iterfind(f".//section[@id='{section}']//tbody/tr")
        bars = [row.find("td[@class='bar']") for row in rows]
        return [0 if bar is None else float(re.search(r"([\d.]+)%", bar.get("style"))[1]) for bar in bars]

    def heat_maps(self, section):
        """For each panel: (chunk size, cache size) -> cell."""
        maps = []
        for table in self.root.iterfind(f".//section[@id='{section}']//table[@class='heat']"):
            chunks = ["".join(th.itertext()) for th in table.iterfind("tfoot/tr/th[@scope='col']")]
            cells = {}
            for row in table.iterfind("tbody/tr"):
                for chunk, td in zip(chunks, row.iterfind("td")):
                    cells[chunk, row.find("th").text] = td
            maps.append((table.get("aria-label"), cells))
        return maps


class ReportTest(CliTest):
    def run_report(self, *arguments, **options):
        return subprocess.run([CHUNKBENCH, "report", *map(str, arguments)], cwd=self.dir, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_SECONDS, check=False,
                              **options)

    def write(self, results, name="results.json"):
        path = self.dir / name
        path.write_text(results if isinstance(results, str) else json.dumps(results), encoding="utf-8")
        return path

    def draw(self, results):
        """The page of `results`."""
        self.write(results)
        result = self.run_report("results.json", "-o", "page.html", "--force")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return self.dir / "page.html"


class DrawnPage(ReportTest):
    """A whole sweep."""

    def setUp(self):
        super().setUp()
        self.results = make_sweep_results.make_results()
        self.page = Page(self.draw(self.results))

    def drawn(self, section):
        """(cell of the results, cell of the page, the others of its panel) for each that is drawn."""
        found = []
        for label, cells in self.page.heat_maps(section):
            source, threads, order = re.search(r" of (\w+), (\d) threads?, (\S+) order", label).groups()
            panel = [cell for cell in self.results["cells"] if cell["source"] == source and
                     cell["threads"] == int(threads) and cell["order"] == order.replace("-", "_")]
            self.assertEqual(len(panel), len(cells))
            for cell in panel:
                [td] = [td for (chunk, cache), td in cells.items() if number(cache) == cell["cache_bytes"] and
                        abs(number(chunk) / cell["chunk_bytes"] - 1) < 0.02]
                found.append((cell, td, panel))
        return found

    def assert_lighter_is_better(self, pairs):
        """pairs of (how good, cell of the page)."""
        shades = []
        for good, td in pairs:
            ground, ink = re.fullmatch(r"background:(#\w+);color:(#\w+)", td.get("style")).groups()
            light, dark = sorted((luminance(ground) + 0.05, luminance(ink) + 0.05), reverse=True)
            self.assertGreaterEqual(light / dark, 4.5, "the text cannot be read")
            shades.append((good, luminance(ground)))
        shades.sort()
        self.assertGreater(len({shade for _, shade in shades}), 5)
        for (_, shade), (_, lighter) in zip(shades, shades[1:]):
            self.assertGreaterEqual(lighter, shade - 1e-9)

    def test_every_cell_is_drawn_once_with_its_number(self):
        drawn = self.drawn("speed")
        self.assertEqual(len(drawn), 200)
        for cell, td, panel in drawn:
            speed, classes = median_speed(cell), td.get("class").split()
            self.assertIn(cell["reason"], td.get("title"))
            self.assertIn(cell["status"], classes)
            self.assertEqual("hatched" in classes, speed is None)
            if speed is None:
                self.assertEqual(td.text, cell["status"])
                continue
            self.assertAlmostEqual(number(td.text) / speed, 1, delta=0.006)
            best = max((other for other in panel if median_speed(other)), key=median_speed)
            self.assertEqual("best" in classes, cell is best)
            reaches = cell["images_per_second"]["max"] >= best["images_per_second"]["min"]
            self.assertEqual("tie" in classes, reaches and cell is not best)
        self.assertEqual({cell["status"] for cell, _, _ in drawn}, {"measured", "pruned", "failed", "skipped"})
        self.assert_lighter_is_better((median_speed(cell), td) for cell, td, _ in drawn if median_speed(cell))

    def test_hit_rates_and_amplification_show_both_numbers(self):
        for section, name, sign in (("hits", "hit_rate", 1), ("amplification", "read_amplification", -1)):
            known = []
            for cell, td, _ in self.drawn(section):
                measured, predicted = cell[name]["measured"], cell[name]["predicted"]
                if measured is None:
                    continue
                known.append((sign * measured, td))
                for text, value in ((td.text, measured), (td.find("small").text, predicted)):
                    self.assertAlmostEqual(number(text), value, delta=max(6e-4, 0.006 * value))
            self.assertGreater(len(known), 60)
            self.assert_lighter_is_better(known)

    def test_ceilings_stand_below_the_best_cells(self):
        titles, rows = self.page.table("best")
        self.assertEqual(len(rows), 8 + 2)
        read = titles.index("read")
        for row, text in zip(rows[8:], ("1.93 GB/s (1.88 GB/s to 1.96 GB/s, 5 rounds)",
                                        "11.2 GB/s (10.9 GB/s to 11.4 GB/s, 3 rounds)")):
            self.assertEqual(row[read], text)
        # The memory is far beyond, and said in words.
        bars = self.page.bars("best")
        self.assertEqual((max(bars), bars[-1]), (100, 0))

    def test_ladder_and_mixing_are_those_of_the_results(self):
        ladder = self.results["ladder"]
        speeds = [variant["images_per_second"]["median"] for variant in ladder]
        _, rows = self.page.table("ladder")
        self.assertEqual([(row[0], number(row[1])) for row in rows],
                         [(variant["variant"], speed) for variant, speed in zip(ladder, speeds)])
        for bar, speed in zip(self.page.bars("ladder"), speeds):
            self.assertAlmostEqual(bar, 100 * speed / max(speeds), delta=0.01)
        _, rows = self.page.table("shuffle")
        self.assertEqual([number(row[2]) for row in rows], [point["window_bytes"] for point in self.results["shuffle"]])
        self.assertEqual([row[2] for row in rows if row[-1]], ["256 MiB"])

    def test_all_numbers_are_there_for_a_spreadsheet(self):
        [text] = self.page.texts(".//details/pre")
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(rows), 200)
        for row, cell in zip(rows, self.results["cells"]):
            self.assertEqual((row["status"], row["reason"]), (cell["status"], cell["reason"]))
            if cell["images_per_second"]:
                self.assertEqual(float(row["images_per_second_median"]), cell["images_per_second"]["median"])

    def test_circumstances_are_there(self):
        facts = dict(zip(self.page.texts(".//dt"), self.page.texts(".//dd")))
        self.assertEqual(facts["cpu"], self.results["machine"]["cpu"])
        self.assertEqual(facts["memory"], "8 GiB")
        self.assertEqual(facts["hdf5"], "1.10.8")
        self.assertEqual(facts["batch size"], "256")
        self.assertEqual(facts["time for the files"], "2:30")
        self.assertEqual(self.page.texts(".//li"), self.results["options"]["notes"])
        self.assertEqual(self.page.texts(".//title"), ["chunkbench: train.h5"])
        # Which cell it names is told by verdict_test.cpp.
        self.assertRegex(self.page.texts(".//p[@class='headline']")[0], r"^Chunks of .* images/s, .* of the disk\.$")


class OtherResults(ReportTest):
    """Sweeps that are unlike others."""

    def test_an_interrupted_sweep_says_so(self):
        results = make_sweep_results.make_results(complete=False)
        page = Page(self.draw(results))
        self.assertRegex(page.texts(".//p[@class='warning']")[0], r"not complete: \d+ of 200 cells")
        for status in ("pending", "measuring"):
            number_of = sum(cell["status"] == status for cell in results["cells"])
            self.assertGreater(number_of, 5)
            self.assertEqual(sum(td.get("class") == f"{status} hatched" for _, cells in page.heat_maps("speed")
                                 for td in cells.values()), number_of)

    def test_texts_of_the_results_never_become_markup(self):
        plain = make_sweep_results.make_results()
        evil = "</title></svg></style><script>document.title='x'</script><img src=x onerror=alert(1)>\"'&\x1b\u202e<b> 4 × größer"
        results = copy.deepcopy(plain)
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
        tags = {element.tag for element in Page(self.draw(plain)).root.iter()}
        self.assertEqual(tags & {"script", "img", "b", "iframe", "object"}, set())
        page = Page(self.draw(results))
        self.assertLessEqual({element.tag for element in page.root.iter()}, tags)
        shown = evil.replace("\u202e", "\\xe2\\x80\\xae").replace("\x1b", "\\x1b")
        self.assertEqual(page.texts(".//li"), [shown])
        self.assertIn("\n".join([shown, "1", "null", "true"]), page.texts(".//dd"), "line breaks stay")

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
            for name in ("hit_rate", "read_amplification"):
                cell[name] = {"predicted": 0, "measured": 0}
        huge = copy.deepcopy(whole)
        for cell in huge["cells"]:
            if cell["images_per_second"]:
                cell["images_per_second"] = {"median": 9.996e29, "min": 1, "max": 1e30, "n": 1}
        for name, results, maps in (("one", one, 1), ("none", none, 0), ("nothing", nothing, 0),
                                    ("pending", pending, 8), ("zero", zero, 8), ("huge", huge, 8)):
            with self.subTest(name):
                path = self.draw(results)
                self.assertNotRegex(path.read_text(encoding="utf-8"), r'="[^"]*\b(nan|inf)\b')
                page = Page(path)
                self.assertEqual(len(page.heat_maps("speed")), maps)
                self.assertEqual(page.root.find(".//section[@id='ladder']") is None, results["ladder"] is None)


@unittest.skipIf(CHROMIUM is None, "no Chromium: tests/run.sh installs it where the system has a package; CHROMIUM names another")
class InABrowser(ReportTest):
    def browse(self, page, *arguments, width=1440, dark=False):
        """Opens it and does what the arguments say; stdout and what the page complained of."""
        with tempfile.TemporaryDirectory(prefix="browser-") as profile:
            command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                       "--disable-background-networking", "--disable-component-update", "--disable-sync",
                       # Neither may a page reach another host, nor the browser its maker.
                       "--host-resolver-rules=MAP * ~NOTFOUND",
                       "--enable-logging=stderr", f"--user-data-dir={profile}", f"--window-size={width},1000",
                       f"--blink-settings=preferredColorScheme={0 if dark else 1}", *arguments, page.resolve().as_uri()]
            result = subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS, check=False)
        log = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, 0, log[-2000:])
        return result.stdout.decode(), [line for line in log.splitlines() if "CONSOLE" in line]

    def test_it_fits_in_light_and_dark_and_in_a_narrow_window(self):
        page = self.draw(make_sweep_results.make_results())
        # The page forbids scripts, so that policy is taken out of a copy.
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*/>', "", page.read_text(encoding="utf-8"))
        script = """<script>
            const over = e => e.scrollWidth - e.clientWidth, style = getComputedStyle(document.body);
            document.title = 'READ' + JSON.stringify([over(document.documentElement),
                Math.max(...[...document.querySelectorAll('table.heat td')].map(over)),
                style.backgroundColor, style.color]) + 'READ';</script></body>"""
        copied = self.dir / "copy.html"
        copied.write_text(text.replace("</body>", script), encoding="utf-8")
        for width, dark in ((1440, False), (1440, True), (500, False)):
            with self.subTest(width=width, dark=dark):
                dom, _ = self.browse(copied, "--dump-dom", width=width, dark=dark)
                page_over, cells_over, *colours = json.loads(dom.split("READ")[1])
                self.assertLessEqual((page_over, cells_over), (0, 0))
                ground, ink = (luminance("#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", colour)))
                               for colour in colours)
                self.assertEqual(ground < ink, dark)
                self.assertGreaterEqual((max(ground, ink) + 0.05) / (min(ground, ink) + 0.05), 7)

    def test_nothing_can_be_fetched_and_nothing_complains(self):
        page = self.draw(make_sweep_results.make_results())
        self.assertEqual(self.browse(page, "--dump-dom")[1], [])
        text = page.read_text(encoding="utf-8")
        self.assertIn("default-src 'none'", text)
        self.assertNotRegex(text, r"(?i)<script|<link rel=\"(?!icon)|@import|https?://|<iframe|<object|\son\w+=")

    def test_it_prints(self):
        pdf = self.dir / "page.pdf"
        self.browse(self.draw(make_sweep_results.make_results()), "--no-pdf-header-footer", f"--print-to-pdf={pdf}",
                    dark=True)
        self.assertGreater(len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes())), 1)


class Command(ReportTest):
    """Without a browser: files, sizes, errors."""

    def test_a_sweep_of_200_cells_is_small(self):
        self.assertLess(self.draw(make_sweep_results.make_results()).stat().st_size, 500_000)

    def assert_refused(self, arguments, code, *texts, **options):
        before = tree(self.dir)
        result = self.run_report(*arguments, **options)
        self.assert_one_line(result, code, *texts)
        self.assertTrue(result.stderr.startswith("chunkbench: "), result.stderr)
        self.assertEqual(tree(self.dir), before)

    def test_an_existing_page_is_replaced_only_by_force(self):
        self.write(make_sweep_results.make_results())
        (self.dir / "page.html").write_text("mine")
        self.assert_refused(["results.json", "-o", "page.html"], 1, "page.html", "--force")
        self.assertEqual(self.run_report("results.json", "-o", "page.html", "--force").returncode, 0)
        self.assertIn("<!DOCTYPE html>", (self.dir / "page.html").read_text(encoding="utf-8"))
        self.assertEqual(sorted(path.name for path in self.dir.iterdir()), ["page.html", "results.json"])

    def test_wrong_usage(self):
        self.write(make_sweep_results.make_results())
        (self.dir / "link.html").symlink_to("results.json")
        for arguments, code, text in ((["results.json"], 2, "--output"), (["-o", "page.html"], 2, "RESULTS"),
                                      (["results.json", "-o", "page.html", "--colour"], 2, "--colour"),
                                      (["results.json", "-o", "results.json", "--force"], 2, "results.json"),
                                      (["results.json", "-o", "link.html", "--force"], 2, "link.html"),
                                      (["absent.json", "-o", "page.html"], 1, "absent.json"),
                                      ([".", "-o", "page.html"], 1, "'.'"), (["results.json", "-o", "."], 1, "."),
                                      (["results.json", "-o", "absent/page.html"], 1, "absent")):
            with self.subTest(arguments):
                self.assert_refused(arguments, code, text)

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
            (changed(lambda r: r["cells"][7]["rounds"][0].update(seconds=0)), "cells[7].rounds[0] takes no time"),
            (changed(lambda r: r["cells"].append(r["cells"][7])), "two cells with the same settings, the second of which is cells[200]"),
            (changed(lambda r: r.update(machine={"a": {"b": 1}})), "machine has a member"),
        ]
        for results, problem in cases:
            with self.subTest(problem):
                self.write(results, "bad.json")
                self.assert_refused(["bad.json", "-o", "page.html"], 1, "bad.json", problem)
        self.write("[" * 1_000_000, "deep.json")
        self.assert_refused(["deep.json", "-o", "page.html"], 1, "deep.json")
