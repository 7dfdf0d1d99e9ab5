"""Checks the repository as a whole.

    tree_check.py ROOT

- The top level holds what it should and nothing else.
- No file mentions a path of the machine it was written on.
- C++ and CMake in README.md and cpp.md is that of samples/cpp, which tests build and run; cpp.md shows all of it.
- What pages link to in the repository is there, headings included.
- No line of a page's prose is wider than 120 columns.
- Each file of unit tests mirrors a source: same folder below tests/unit, same name.
- The recipes of tools/packaging are of this version, and name options, presets and files that there are.
"""

import json
import pathlib
import re
import subprocess
import sys
import textwrap

FOLDERS = {"libchunkio", "tools", "bench", "samples", "tests"}
FILES = {"CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "pyproject.toml", "CHANGELOG.md", "CONTRIBUTING.md"}
# Where the sources are that tests/unit/FOLDER mirrors; "" is any other folder.
MIRRORED = {"chunkio": "libchunkio/include", "cli": "tools", "h5pack": "tools", "torch": "samples", "": "libchunkio/src"}
# Made by builds and ignored by git.
GENERATED = {"build", "CMakeUserPresets.json"}

# Written in parts, so that this file does not match itself.
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:wor" + r"k/|tmp/buil" + r"d|roo" + r"t/)")

STRING_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FLAG = re.compile(r"(?<![\w-])--[a-z]")
MAX_COLUMNS = 120
# A link or an image, with its text and its target.
WHOLE_LINK = re.compile(r"!?\[[^\]]*\]\([^)\s]+\)")
# What cannot be wrapped: rows of tables, headings, indented code.
UNWRAPPED = re.compile(r"\s*[|#]| {4}")
# Around what is shown of a program, and what pages show.
MARK = re.compile(r"^ *// \[([a-z ]+)\]\n", re.MULTILINE)
LISTING = re.compile(r"^```(?:cpp|cmake)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CMAKE_OPTION = re.compile(r"CHUNKIO_(?:BUILD|WITH)_[A-Z]+\b")


def check_top_level(root):
    entries = {path.name for path in root.iterdir() if not path.name.startswith(".")} - GENERATED
    for name in sorted(entries - FOLDERS - FILES):
        yield f"{name} does not belong at the top level"
    for name in sorted((FOLDERS | FILES) - entries):
        yield f"{name} is missing at the top level"


def source_files(root):
    """What git tracks or would track; without git, everything that is not generated."""
    listing = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=False)
    if listing.returncode == 0:
        names = [root / name for name in listing.stdout.decode().split("\0") if name]
    else:
        names = [path for path in root.rglob("*") if path.relative_to(root).parts[0] not in GENERATED | {".git"}]
    return sorted(path for path in names if path.is_file())


def check_machine_paths(root):
    for path in source_files(root):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if MACHINE_PATHS.search(line):
                yield f"{path.relative_to(root)}:{number}: names a path of one machine: {line.strip()}"


def check_library_flags(root):
    """The library names its options, not the flags of a program that is written with it."""
    for path in source_files(root / "libchunkio"):
        if path.suffix not in {".cpp", ".hpp", ".cu", ".cuh"}:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if any(FLAG.search(literal) for literal in STRING_LITERAL.findall(line)):
                yield f"{path.relative_to(root)}:{number}: names a flag of a program: {line.strip()}"


def shown_code(root):
    """What pages may show, and where it is from: between two equal marks of a program, and whole other files."""
    for path in source_files(root / "samples" / "cpp"):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".cpp":
            parts = MARK.split(text)
            for begin, code, end in zip(parts[1::4], parts[2::4], parts[3::4], strict=True):
                assert begin == end, f"{path}: [{begin}] ends with [{end}]"
                yield textwrap.dedent(code), f"[{begin}] of {path.relative_to(root)}"
        else:
            yield text, path.relative_to(root)


def check_listings(root):
    origins = dict(shown_code(root))
    for page in ("README.md", "libchunkio/doc/cpp.md"):
        listings = LISTING.findall((root / page).read_text(encoding="utf-8"))
        for listing in listings:
            if listing not in origins:
                yield f"{page} shows what is not marked in a program of samples/cpp: {listing.partition(chr(10))[0]} ..."
        if page != "README.md":
            for code in origins.keys() - set(listings):
                yield f"{page} does not show {origins[code]}"


def anchors(page):
    """Of its headings, as code hosts make them."""
    titles = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def check_links(root):
    for page in source_files(root):
        if page.suffix != ".md":
            continue
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            if "://" in link:
                continue
            if not target.exists():
                yield f"{page.relative_to(root)} links to {link}, which is not there"
            elif anchor and anchor not in anchors(target):
                yield f"{page.relative_to(root)} links to {link}, a heading that is not there"


def is_mostly_link(line):
    longest = max((len(link) for link in WHOLE_LINK.findall(line)), default=0)
    return longest > len(line) - longest


def check_line_widths(root):
    """Prose is wrapped; tables, code, headings, and lines that are mostly one link or image are as wide as they are."""
    for page in source_files(root):
        if page.suffix != ".md":
            continue
        in_code = False
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
            if line.lstrip().startswith("```"):
                in_code = not in_code
            elif len(line) > MAX_COLUMNS and not (in_code or UNWRAPPED.match(line) or is_mostly_link(line)):
                yield f"{page.relative_to(root)}:{number}: {len(line)} columns of prose; wrap it at {MAX_COLUMNS}"


def check_unit_tests(root):
    """FOLDER/NAME_test.cpp tests the source FOLDER/NAME, or one that NAME begins with: window_reader_fault."""
    unit = root / "tests" / "unit"
    for path in source_files(unit):
        name, is_test, _ = path.name.partition("_test.cpp")
        if not is_test or name.endswith("_conformance"):
            continue
        folder = path.parent.relative_to(unit)
        home = root / MIRRORED.get(folder.parts[0], MIRRORED[""])
        if (root / "bench" / folder).is_dir():
            home = root / "bench"
        stems = {source.stem for source in (home / folder).glob("*.*")}
        words = name.split("_")
        if not stems & {"_".join(words[:count]) for count in range(1, len(words) + 1)}:
            yield f"{path.relative_to(root)} mirrors no source of {(home / folder).relative_to(root)}"


def check_recipes(root):
    """As far as that goes without docker, vcpkg and conda."""
    project = (root / "CMakeLists.txt").read_text(encoding="utf-8")
    version = re.search(r"^  VERSION ([\d.]+)$", project, re.MULTILINE)[1]
    folder = root / "tools" / "packaging"
    port, recipe, docker = (folder / name for name in ("vcpkg/portfile.cmake", "conda/meta.yaml", "Dockerfile"))
    manifest = json.loads((folder / "vcpkg" / "vcpkg.json").read_text(encoding="utf-8"))
    texts = {path: path.read_text(encoding="utf-8") for path in (port, recipe, docker)}
    conda_version = re.search(r'set version = "([^"]*)"', texts[recipe])[1]
    for name, found in (("vcpkg", manifest["version-semver"]), ("conda", conda_version)):
        if found != version:
            yield f"the recipe for {name} is of version {found}, the project of {version}"
    for path, text in texts.items():
        for option in sorted(set(CMAKE_OPTION.findall(text))):
            if not re.search(rf"\(\s*{option}\b", project):
                yield f"{path.relative_to(root)} sets {option}, which is no option of CMakeLists.txt"
    for feature in manifest["features"]:
        if f'"{feature}" IN_LIST FEATURES' not in texts[port]:
            yield f"{port.relative_to(root)} does not know the feature {feature}"
    presets = {preset["name"] for preset in json.loads((root / "CMakePresets.json").read_text())["workflowPresets"]}
    for preset in re.findall(r"cmake --workflow --preset (\w+)", texts[docker]):
        if preset not in presets:
            yield f"{docker.relative_to(root)} uses the preset {preset}, which is not there"
    copied = re.findall(r"^COPY (?!--from)(\S+)", texts[docker], re.MULTILINE)
    for name in [*copied, *re.findall(r"\bbash ([\w/]+\.sh)", texts[docker])]:
        if not (root / name).exists():
            yield f"{docker.relative_to(root)} needs {name}, which is not there"


def main():
    root = pathlib.Path(sys.argv[1])
    problems = [*check_top_level(root), *check_machine_paths(root), *check_library_flags(root),
                *check_listings(root), *check_links(root), *check_line_widths(root),
                *check_unit_tests(root), *check_recipes(root)]
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
