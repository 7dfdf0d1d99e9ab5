"""Checks who includes what: folders point one way, and third parties stay in theirs.

    layer_check.py ROOT

Prints one line for each include that breaks a rule of the table below and exits 1 if there is one.
"""

import pathlib
import re
import sys

SUFFIXES = {".hpp", ".cpp", ".h", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")', re.MULTILINE)

THIRD_PARTIES = {
    "HDF5": re.compile(r"(hdf5(_hl)?|H5\w*)\.h$"),
    "CUDA": re.compile(r"(cuda|cub|cufile|curand|cooperative_groups|device_)"),
    # Names of stages for profilers: headers that need no CUDA.
    "NVTX": re.compile(r"nvtx3/"),
    "OpenCV": re.compile(r"opencv2?/"),
    "libjpeg": re.compile(r"jpeglib\.h$"),
    "libpng": re.compile(r"png\.h$"),
    "libwebp": re.compile(r"webp/"),
    "TBB": re.compile(r"(tbb|oneapi)/"),
    "CLI11": re.compile(r"CLI/"),
    "codecs": re.compile(r"(libdeflate|zlib|lz4|zstd)\w*\.h$"),
    "JSON": re.compile(r"nlohmann/"),
    "libcurl": re.compile(r"curl/"),
    "XXH3": re.compile(r"xxhash\.h$"),
    "Torch": re.compile(r"(torch|ATen|c10)/"),
    "nanobind": re.compile(r"nanobind/"),
}

LIBRARY = ["base", "image", "plan", "io", "h5", "sources", "read", "write", "advice", "device"]
H5PACK = ["image", "sources", "dataset", "pack", "sparse", "tune", "report", "commands"]

# Each folder: how its files are named in includes, what of ours it may include beside itself and <chunkio/...>, and
# which third parties. The public headers of opt-in targets are the one exception, in OPT_IN_HEADERS.
INNER = [f"libchunkio/src/{layer}" for layer in LIBRARY]
TABLE = {}


def _add(folder, may_use, third_parties=()):
    TABLE[folder] = (set(may_use), set(third_parties))


for _i, (_layer, _parties) in enumerate({
        "base": ("XXH3", "NVTX"), "image": ("libjpeg", "libpng", "libwebp"), "plan": (), "io": ("libcurl", "JSON"), "h5": ("HDF5", "codecs"), "sources": (),
        "read": ("JSON",), "write": ("JSON",), "advice": ("JSON",), "device": ("CUDA", "JSON")}.items()):
    # Reading and writing do not know each other.
    _add(f"libchunkio/src/{_layer}", [f for f in INNER[:_i] if not (_layer == "write" and f.endswith("/read"))], _parties)
_add("libchunkio/include/chunkio", [])
_add("libchunkio/include/chunkio/cuda", [])
_add("libchunkio/probe", [])
_add("libchunkio/python/src", [], ("nanobind", "JSON"))
_add("tools/cli", [], ("CLI11", "JSON"))
for _i, (_room, _parties) in enumerate({
        "image": ("OpenCV", "libjpeg", "codecs"), "sources": ("JSON", "TBB", "XXH3"), "dataset": ("JSON",), "pack": ("JSON", "TBB"),
        "sparse": ("JSON", "TBB", "XXH3", "codecs"), "tune": (), "report": ("JSON",), "commands": ("CLI11", "JSON", "TBB", "XXH3")}.items()):
    _add(f"tools/h5pack/{_room}", ["tools/cli", *(f"tools/h5pack/{room}" for room in H5PACK[:_i])], _parties)
_add("bench/harness", [*INNER, "tools/h5pack/image"], ("HDF5", "libjpeg", "CLI11", "JSON"))
_add("bench/gpu", [*INNER, "bench/harness"], ("CUDA", "CLI11", "JSON"))
_add("bench/figures", [*INNER, "bench/harness", "bench/gpu"], ("HDF5", "codecs", "CLI11", "JSON"))
_add("bench/chunkbench", [*INNER, "bench/harness", "tools/cli", "tools/h5pack/dataset", "tools/h5pack/pack"],
     ("HDF5", "CLI11", "JSON"))
_add("bench/ladder", [*INNER, "bench/harness", "bench/chunkbench", "tools/cli"], ("HDF5", "libjpeg", "CLI11"))
_add("samples", [], ("OpenCV", "CLI11"))
_add("samples/cpp/libtorch", [], ("Torch",))
_add("samples/torch", [], ("Torch", "CUDA", "CLI11", "JSON"))
TESTS_MAY_USE = [*INNER, "tools/cli", *(f"tools/h5pack/{room}" for room in H5PACK), "bench/harness", "bench/chunkbench",
                 "bench/ladder", "samples/torch", "tests/support"]
for _folder in ("tests/unit", "tests/support", "tests/fault", "tests/fuzz", "tests/property", "tests/programs", "tests/consumer"):
    _add(_folder, TESTS_MAY_USE, THIRD_PARTIES)

# How private headers are found.
ROOTS = ("libchunkio/src", "tools", "bench", "tests", "samples/torch", "libchunkio/python/src")
# Public headers, by name, that need a third party, and of it this one header. None of the others may include them.
OPT_IN_HEADERS = {"torch.hpp": "torch/types.h"}


def folder_of(relative):
    """The folder of the table that `relative` is in, which may be above its own; None if there is none."""
    for parent in relative.parents:
        if parent.as_posix() in TABLE:
            return parent.as_posix()
    return None


def find_header(root, relative, include):
    """Where a quoted include leads to, as a path of the repository."""
    for base in (*ROOTS, relative.parent.as_posix()):
        path = pathlib.PurePosixPath(base) / include
        if (root / path).is_file():
            return path
    return None


def check_public_header(relative, include, quoted):
    if not quoted and OPT_IN_HEADERS.get(relative.name) == include:
        return
    name = include.rpartition("/")[2]
    if include.startswith("chunkio/") and name in OPT_IN_HEADERS and relative.name not in OPT_IN_HEADERS:
        yield "a header that needs a third party is for programs to include"
    if quoted or ("/" in include and not include.startswith("chunkio/")) or include.endswith(".h"):
        yield "public headers include the C++ standard library and <chunkio/...> only"


def check_include(root, relative, include, quoted):
    folder = folder_of(relative)
    if folder is None:
        yield "this folder is in no row of the table in layer_check.py"
        return
    if folder.startswith("libchunkio/include"):
        yield from check_public_header(relative, include, quoted)
        return
    may_use, parties = TABLE[folder]
    for party, pattern in THIRD_PARTIES.items():
        if pattern.match(include) and party not in parties:
            yield f"{folder} must not include {party}"
    if include.startswith("libchunkio/") or ".." in include:
        yield 'private headers are named as "folder/file.hpp"'
    elif quoted:
        target = find_header(root, relative, include)
        if target is None:
            yield "there is no such header"
        elif "/" not in include and folder_of(target) not in ("samples/torch", "libchunkio/python/src"):
            yield 'private headers are named as "folder/file.hpp"'
        elif folder_of(target) != folder and folder_of(target) not in may_use:
            yield f"{folder} must not include from {folder_of(target)}"
    elif include.partition("/")[0] in LIBRARY:
        yield "private headers are included in quotes"


def check_file(root, relative, text):
    for match in INCLUDE.finditer(text):
        include = match.group(1) or match.group(2)
        quoted = match.group(2) is not None
        line = text.count("\n", 0, match.start(2 if quoted else 1)) + 1
        for problem in check_include(root, relative, include, quoted):
            yield f"{relative}:{line}: includes {include}: {problem}"


def check_tree(root):
    """All broken rules below `root`, one line each, and how many files were looked at."""
    problems = []
    num_files = 0
    for top in ("libchunkio", "tools", "bench", "samples", "tests"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                num_files += 1
                problems += check_file(root, path.relative_to(root), path.read_text(encoding="utf-8"))
    return problems, num_files


def main():
    problems, num_files = check_tree(pathlib.Path(sys.argv[1]))
    if num_files == 0:
        problems.append(f"no sources found below {sys.argv[1]}")
    for problem in problems:
        print(problem)
    print(f"{num_files} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
