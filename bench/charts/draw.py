#!/usr/bin/env python3
"""Draws the figures of the documentation as SVG: three from the tables of bench/RESULTS.md, a session, and two timelines.

    bench/charts/draw.py [FOLDER]        # FOLDER: where the files go; default: the folder of this script

    loaders.svg        images/s of loaders in Python, from "Figures of loaders in Python"
    ladder.svg         images/s and waiting of the variants, from "Figures of the ladder"
    accuracy.svg       accuracy and label entropy over window sizes, from "Figures of accuracy"
    terminal.svg       a session of h5pack, from terminal.txt, which bench/charts/record.py writes
    timeline.svg       when a training loop waits, from timeline.json, which bench/charts/timeline.py writes
    gpu-timeline.svg   what a GPU does during steps, from gpu-timeline.json, which bench/gpu/compare_training.py writes

No figure is written here: change RESULTS.md, then run this again. A title that the tables no longer support is an error. The
same tables give the same bytes; draw_test.py compares them with the committed files. Needs nothing but Python 3.9.
"""

import argparse
import json
import pathlib
import re
import statistics
from decimal import ROUND_HALF_UP, Decimal

from svg import Drawing, short, text_width

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE.parent / "RESULTS.md"
TIMELINE = HERE / "timeline.json"
GPU_TIMELINE = HERE / "gpu-timeline.json"
TERMINAL = HERE / "terminal.txt"
SHOWN_MS = 500
SHOWN_GPU_MS = 50

# ---------------------------------------------------------------------------------------------- RESULTS.md


class Table:
    """A Markdown table, and the line above it."""

    def __init__(self, caption, rows):
        self.caption = caption
        self.header, self.rows = rows[0], rows[2:]  # rows[1] is the line of dashes

    def column(self, words):
        """The cells below the only header that begins with `words`."""
        found = [i for i, name in enumerate(self.header) if name.startswith(words)]
        if len(found) != 1:
            raise SystemExit(f"{RESULTS}: {len(found)} columns '{words}' in {self.header}")
        return [row[found[0]] for row in self.rows]


class Section:
    """What stands below one heading: `prose` in one line, and its tables."""

    def __init__(self, heading, lines):
        self.heading, self.tables, prose, table, caption = heading, [], [], [], ""
        for line in lines + [""]:
            if line.startswith("|"):
                table.append([cell.strip() for cell in line.strip().strip("|").split("|")])
                continue
            if table:
                self.tables.append(Table(caption, table))
                table, caption = [], ""
            if line.strip():
                caption = line.strip()
                prose.append(caption)
        self.prose = " ".join(prose)

    def find(self, pattern):
        found = re.search(pattern, self.prose)
        if not found:
            raise SystemExit(f"{RESULTS}: nothing matches '{pattern}' in '{self.heading}'")
        return found.group(1).strip()


class Results:
    def __init__(self, text):
        self.sections = []
        for part in re.split(r"^# ", text, flags=re.MULTILINE)[1:]:
            heading, *lines = part.splitlines()
            self.sections.append(Section(heading, lines))

    def section(self, words):
        for section in self.sections:
            if words in section.heading:
                return section
        raise SystemExit(f"{RESULTS}: no heading with '{words}'")

    def machine(self, section):
        """Processor and date; a section may say that they are those of the one before it."""
        while "The same machine and date" in section.prose:
            section = self.sections[self.sections.index(section) - 1]
        processor = section.find(r"((?:AMD|Intel|ARM|Apple)[^.;,]*, \d+ CPUs)").replace("(R)", "")
        return f"{processor}, {section.find(r'([0-9]{4}-[0-9]{2}-[0-9]{2})')}"


def numbers(cell):
    """All numbers of a cell: of "5.88 (3.32 to 6.01)" the median and both ends of its range."""
    return [float(text.replace(",", "")) for text in re.findall(r"[-+]?\d[\d,]*(?:\.\d+)?", cell)]


def number(cell):
    return numbers(cell)[0]


def claim(holds, title):
    """`title`, a finding, if the tables support it."""
    if not holds:
        raise SystemExit(f"{RESULTS} no longer supports the title '{' '.join(title)}': write another one")
    return title


# ---------------------------------------------------------------------------------------------- numbers and words


def rounded(value, digits):
    """`value` with `digits` behind the point, halves away from zero."""
    return f"{Decimal(str(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):,}"


def amount(value):
    """Three digits at most: 423, 2,920, 98,800, 2.6 million."""
    if value >= 999_500:
        return f"{rounded(value / 1e6, 1)} million"
    unit = 10 ** max(0, len(str(int(value))) - 3)
    return f"{int(Decimal(str(value / unit)).quantize(Decimal(1), ROUND_HALF_UP)) * unit:,}"


def times(ratio):
    return rounded(ratio, 0 if ratio >= 10 else 1)


def signed(value):
    """With a sign that is as wide as a plus."""
    return f"{value:+.1f}".replace("-", "\N{MINUS SIGN}")


def wording(text):
    """The words of the documentation for those of older tables."""
    text = re.sub(r" \(`[^`]*`\)", "", text).replace("picture", "image")
    text = re.sub(r"rdcc \d+ slots, (.*), w0 = .*", r"chunk cache of \1", text)
    return re.sub(r"^the same, ", "\N{RIGHTWARDS ARROW} ", text)


# ---------------------------------------------------------------------------------------------- the figures


def loader_panel(table):
    """(size, bars by falling speed, ratios by name) of the rows that deliver uint8 images."""
    names = [row[0] for row in table.rows]
    keep = [i for i, name in enumerate(names) if not name.startswith("normalised")]
    speeds, beside, ratios = (table.column(words) for words in ("images/s", "chunkio beside", "chunkio /"))
    bars = [(names[i].replace("PyTorch's ", ""), number(speeds[i])) for i in keep]
    bars.append(("chunkio", statistics.median(number(beside[i]) for i in keep)))
    bars.sort(key=lambda bar: -bar[1])
    size = table.caption.split(",")[0].replace("x", " \N{MULTIPLICATION SIGN} ")
    return size, bars, {names[i].replace("PyTorch's ", ""): number(ratios[i]) for i in keep}


def loaders(results):
    section = results.section("loaders in Python")
    panels = [loader_panel(table) for table in section.tables]
    ratios = [ratio for panel in panels for ratio in panel[2].values()]
    title = claim(min(ratios) > 1, [f"chunkio delivers {times(min(ratios))} to {times(max(ratios))} times as many",
                                    "images/s as other loaders in Python"])
    drawing = Drawing(720, 0, " ".join(title), "Images per second. " + " ".join(
        f"Images of {size}: " + ", ".join(f"{name} {amount(speed)}" for name, speed in bars) + "."
        for size, bars, _ in panels))
    batch = section.find(r"batches of (\d+)")
    left, right = 220, 696
    # The longest bar for which, in both panels, each value has room behind its bar, and a peer's ratio behind that.
    longest = min((right - left - 10 - text_width(amount(speed), 18) - (110 if name in lead else 0)) * bars[0][1] / speed
                  for _, bars, lead in panels for name, speed in bars)
    y = drawing.heading(title, [f"Batches of {batch} uint8 images, warm page cache", results.machine(section)])
    for size, bars, lead in panels:
        y += 30
        drawing.text(24, y, f"{size}, images/s", 20, "ink bold")
        drawing.text(right, y, "chunkio's lead", 17, "own bold", "end")
        scale = longest / bars[0][1]
        for name, speed in bars:
            y += 34
            kind = "peer" if name in lead else "own"
            weight = "" if name in lead else " bold"
            drawing.text(left - 12, y, name, 18, ("ink" if name in lead else "own") + weight, "end")
            drawing.rect(left, y - 18, max(2, scale * speed), 24, kind)
            drawing.text(left + max(2, scale * speed) + 8, y, amount(speed), 18, "ink" + weight)
            if name in lead:
                drawing.text(right, y, f"{times(lead[name])} times", 18, "own bold", "end")
        y += 14
    for line in ["Each loader runs at its best settings. Ratios are medians of interleaved",
                 "rounds. chunkio's bar is the median of its runs beside the other loaders."]:
        y += 24
        drawing.text(24, y, line, 16, "soft")
    drawing.height = y + 20
    return drawing


def ladder(results):
    section = results.section("the ladder")
    table = section.tables[0]
    names = [row[0] for row in table.rows]
    speeds = [number(cell) for cell in table.column("images/s")]
    waits = [number(cell) for cell in table.column("stall")]
    limit = number(section.find(r"lets through is ([\d,]+) images a second"))
    step, size = section.find(r"step of (\d+ ms)"), section.find(r"(\d+x\d+x3)").replace("x", " \N{MULTIPLICATION SIGN} ")
    # chunkio reads from here on; the variants before use files, memory or libhdf5.
    first = next(i for i, name in enumerate(names) if "scatter reads" in name)
    echo = next(i for i, name in enumerate(names) if "echo factor" in name)
    disk, factor = section.find(r"disk of a ([^,]*)"), re.search(r"echo factor (\d+)", names[echo]).group(1)
    peer = max(speed for name, speed in zip(names[:first], speeds) if "in memory" not in name)
    title = claim(peer < speeds[first] < speeds[echo], [
        f"chunkio is {times(speeds[first] / peer)} times as fast as the next best",
        f"way from a {disk}, {times(speeds[echo] / peer)} times with echo"])
    drawing = Drawing(720, 0, " ".join(title), "Images per second, and the share of time that the step waits. " + "; ".join(
        f"{wording(name)}: {amount(speed)}, {wait} %" for name, speed, wait in zip(names, speeds, waits)) + ".")
    left, full = 24, 672
    y = drawing.heading(title, [f"Images/s of {size}, simulated {disk}, training step of {step}", results.machine(section)])
    y += 26
    drawing.text(left, y, f"The full width is the step's limit, {amount(limit)} images/s", 17, "soft")
    for i, (name, speed, wait) in enumerate(zip(names, speeds, waits)):
        own = i >= first
        y += 34
        label = ("chunkio: " if i == first else "") + wording(name)
        drawing.text(left, y, label[0].upper() + label[1:] if i != first else label, 18, "own bold" if own else "ink")
        drawing.text(left + full, y, f"step waits {rounded(wait, 0)} %", 17, "soft", "end")
        y += 8
        drawing.rect(left, y, full, 24, "track")
        drawing.rect(left, y, full * speed / limit, 24, "own" if own else "peer")
        y += 18
        drawing.text(left + full * speed / limit + 8, y, amount(speed), 18, "ink bold" if own else "ink")
    for line in ["\N{RIGHTWARDS ARROW} is the variant above, with this change. Single files are JPEG.",
                 f"Echo uses each image {factor} times, shuffled and augmented anew."]:
        y += 25
        drawing.text(left, y + 10, line, 16, "soft")
    drawing.height = y + 30
    return drawing


def accuracy(results):
    section = results.section("accuracy")
    table = section.tables[0]
    files, windows = [wording(cell) for cell in table.column("file")], table.column("window")
    columns = [[numbers(cell) for cell in table.column(words)] for words in ("globally random", "chunk-shuffled")]
    differences = [numbers(cell) for cell in table.column("difference")]
    chunks = section.find(r"in (\d+) chunks")
    entropies, most = [number(cell) for cell in table.column("label entropy")], float(section.find(r"order it is ([0-9.]+) bits"))
    title = claim(table.column("holds 0")[0] == "yes" and "shuffled once" in files[0],
                  ["Reading by chunks costs no measurable accuracy", "if the file was shuffled when it was packed"])
    drawing = Drawing(720, 0, " ".join(title), "Held-out accuracy by window size. " + "; ".join(
        f"{file}, window of {window}: {own[0]} %, in globally random order {random[0]} %; label entropy {entropy} of {most} bits"
        for file, window, random, own, entropy in zip(files, windows, *columns, entropies)) + ".")
    left, full = 24, 560
    y = drawing.heading(title, [
        f"Held-out accuracy, small ResNet, CIFAR-10, {section.find(r'--epochs ([0-9]+)')} epochs, {section.find(r'([0-9]+) seeds')} seeds",
        results.machine(section)])
    for i, (random, own, difference) in enumerate(zip(*columns, differences)):
        if i == 0 or files[i] != files[i - 1]:
            y += 32
            drawing.text(left, y, "File " + files[i], 20, "ink bold")
        y += 32
        drawing.text(left, y, f"Window of {windows[i].replace(' chunks', f' of {chunks} chunks')}", 18)
        drawing.text(696, y, f"{signed(difference[0])} points", 18, "ink", "end")
        y += 9
        drawing.rect(left, y, full, 26, "track")
        drawing.rect(left, y, full * own[0] / 100, 26, "own")
        low, high, mark = (left + full * value / 100 for value in (own[1], own[2], random[0]))
        if high - low > 6:
            drawing.path(f"M{short(low)} {y + 13}H{short(high)}M{short(low)} {y + 7}v12M{short(high)} {y + 7}v12", "rule", 2)
        drawing.path(f"M{short(mark)} {y - 5}v36", "rule", 2.5)
        drawing.text(696, y + 19, f"{rounded(own[0], 1)} %", 18, "own bold", "end")
        y += 32
        drawing.rect(left, y, full, 12, "track")
        drawing.rect(left, y, full * entropies[i] / most, 12, "peer")
        drawing.text(696, y + 13, f"{rounded(entropies[i], 1)} bits", 17, "soft", "end")
        y += 14
    y += 14
    drawing.path(f"M{left + 4} {y}v24", "rule", 2.5)
    drawing.text(left + 16, y + 17, "globally random order, and the difference to it in points", 17, "soft")
    drawing.path(f"M{left} {y + 41}h24M{left} {y + 35}v12M{left + 24} {y + 35}v12", "rule", 2)
    drawing.text(left + 36, y + 46, "range of the seeds, where it is wide enough to draw", 17, "soft")
    drawing.rect(left, y + 63, 24, 12, "peer")
    drawing.text(left + 36, y + 75, "entropy of the labels in a batch; the full width is random order", 17, "soft")
    drawing.height = y + 97
    return drawing


def timeline(_):
    run = json.loads(TIMELINE.read_text(encoding="utf-8"))
    before, after = run["loops"]
    size = run["size"].replace("x", " \N{MULTIPLICATION SIGN} ")
    title = claim(after["stalled_percent"] < 5 < 50 < before["stalled_percent"],
                  ["The training loop that waited half of its time", f"now computes for {rounded(100 - after['stalled_percent'], 0)} % of it"])
    drawing = Drawing(720, 0, " ".join(title), f"The first {SHOWN_MS} ms of steps in the middle of an epoch. " + " ".join(
        f"{loop['name']}: waits {rounded(loop['stalled_percent'], 0)} % of the time, {amount(loop['images_per_second'])} images/s."
        for loop in (before, after)))
    left, full = 24, 672
    y = drawing.heading(title, [f"{amount(run['images'])} images of {size}, batches of {run['batch']}, warm page cache",
                                f"The step sleeps {rounded(run['step_ms'], 0)} ms, as while a GPU computes", run["machine"]])
    for loop in (before, after):
        y += 34
        own = loop is after
        drawing.text(left, y, loop["name"], 20, "own bold" if own else "ink bold")
        y += 26
        drawing.text(left, y, f"waits {rounded(loop['stalled_percent'], 0)} % of the time, {amount(loop['images_per_second'])} images/s", 18, "soft")
        y += 12
        drawing.rect(left, y, full, 44, "track", 0)
        now = 0.0
        for waited, computed in loop["steps_ms"]:
            begin, end = now + waited, min(now + waited + computed, SHOWN_MS)
            now = now + waited + computed
            if begin < end:
                scale = full / SHOWN_MS
                # A hair of room, so that steps can be told apart.
                drawing.rect(left + scale * begin, y, max(1, scale * (end - begin) - 1.5), 44, "own" if own else "peer", 0)
        if now < SHOWN_MS:
            raise SystemExit(f"{TIMELINE} has only {now:.0f} ms of '{loop['name']}'")
        y += 50
    y += 22
    drawing.text(left, y, "0", 17, "soft")
    drawing.text(left + full, y, f"{SHOWN_MS} ms", 17, "soft", "end")
    drawing.text(left + full / 2, y, "bars: the step computes; gaps: it waits", 17, "soft", "middle")
    drawing.height = y + 24
    return drawing


def gpu_timeline(_):
    run = json.loads(GPU_TIMELINE.read_text(encoding="utf-8"))
    lanes = {name: [(begin / 1000, min(end / 1000, SHOWN_GPU_MS)) for begin, end in spans if begin / 1000 < SHOWN_GPU_MS]
             for name, spans in run["lanes"].items()}
    busy = {name: 100 * sum(end - begin for begin, end in spans) / SHOWN_GPU_MS for name, spans in lanes.items()}
    size = run["images"].replace("x", " \N{MULTIPLICATION SIGN} ")
    title = claim(busy["step"] > 95, ["The network always has work: the next batch", "is copied and made while it computes"])
    drawing = Drawing(720, 0, " ".join(title), f"{SHOWN_GPU_MS} ms of training on a GPU: the network computes {rounded(busy['step'], 0)} % of the "
                      f"time, images cross the bus {rounded(busy['copies'], 1)} %, batches are made {rounded(busy['batches'], 1)} %.")
    left, full = 24, 672
    y = drawing.heading(title, [f"ResNet-18, batches of {run['batch']} images of {size}, fed from the host", run["gpu"]])
    for name, what in (("copies", "uint8 images cross the bus"), ("batches", "chunkio's kernel makes a batch"), ("step", "the network computes")):
        y += 30
        drawing.text(left, y, f"{what}: {rounded(busy[name], 0 if name == 'step' else 1)} % of the time", 18, "ink")
        y += 12
        drawing.rect(left, y, full, 32, "track", 0)
        for begin, end in lanes[name]:
            scale = full / SHOWN_GPU_MS
            drawing.rect(left + scale * begin, y, max(1, scale * (end - begin)), 32, "peer" if name == "step" else "own", 0)
        y += 36
    y += 22
    drawing.text(left, y, "0", 17, "soft")
    drawing.text(left + full, y, f"{SHOWN_GPU_MS} ms", 17, "soft", "end")
    drawing.text(left + full / 2, y, "gaps below 20 µs are not shown", 17, "soft", "middle")
    drawing.height = y + 24
    return drawing


def terminal(_):
    """The lines of a terminal of 80 columns, commands and headings bold."""
    lines = []
    for line in TERMINAL.read_text(encoding="utf-8").splitlines():
        lines += [line[i:i + 80] for i in range(0, len(line), 80)] or [""]
    drawing = Drawing(780, 44 + 20 * len(lines), "h5pack packs a folder of images and finds what training waits for",
                      "A terminal: " + " ".join(line.strip() for line in lines if line.strip()))
    drawing.rect(1, 1, 778, drawing.height - 2, "edge", 8)
    for i, line in enumerate(lines):
        if line.startswith("$"):
            kind = "own bold mono"
        else:
            kind = "ink bold mono" if line.startswith("bottleneck") else "ink mono"
        drawing.text(24, 36 + 20 * i, line, 15, kind)
    return drawing


FIGURES = {"loaders.svg": loaders, "ladder.svg": ladder, "accuracy.svg": accuracy, "terminal.svg": terminal, "timeline.svg": timeline,
           "gpu-timeline.svg": gpu_timeline}


def main():
    parser = argparse.ArgumentParser(description="Draws the figures of the documentation from bench/RESULTS.md.")
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=HERE, help="where the SVG files go")
    folder = parser.parse_args().folder
    results = Results(RESULTS.read_text(encoding="utf-8"))
    for name, draw in FIGURES.items():
        (folder / name).write_bytes(draw(results).svg().encode("utf-8"))


if __name__ == "__main__":
    main()
