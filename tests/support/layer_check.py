"""Checks who includes what: layers point one way, and third-party headers stay in their place.

    layer_check.py ROOT

Prints one line for each include that breaks a rule of libchunkio/doc/architecture.md and exits 1 if there
is one.
"""

import pathlib
import re
import sys

LAYERS = ["base", "plan", "h5", "io", "pipeline", "device"]
SUFFIXES = {".hpp", ".cpp", ".h", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")', re.MULTILINE)

HDF5 = re.compile(r"(hdf5(_hl)?|H5\w*)\.h$")
CUDA = re.compile(r"(cuda|cub|cufile|curand|cooperative_groups|nvml|device_)")
# Names of stages for profilers: headers that need no CUDA, and one file that knows them.
NVTX = re.compile(r"nvtx3/")
TRACE = "libchunkio/src/base/trace.cpp"
OPENCV = re.compile(r"opencv2?/")
TBB = re.compile(r"(tbb|oneapi)/")
CODECS = re.compile(r"(libdeflate|liburing|zlib|jpeglib|lz4|zstd)\w*\.h$")
# The only files of h5pack that know OpenCV: they turn bytes into images, reshape them, or draw. What sets up
# threads may also tell OpenCV how many it has, and `--version` asks for its version.
OPENCV_TOOLS = re.compile(r"(axis_order|codecs|decode|encoder|transform|preview|contact_sheet)")
OPENCV_SETTINGS = "opencv2/core/utility.hpp"
# Public headers, by name, that need a third party, and of it this one header. None of the others may include them.
OPT_IN_HEADERS = {"torch.hpp": "torch/types.h"}


def layer_of(include):
    first, slash, _ = include.partition("/")
    return first if slash and first in LAYERS else None


def check_library_source(relative, include, quoted):
    """Problems of one include in libchunkio/src."""
    own = relative.parts[2]
    if own not in LAYERS or len(relative.parts) < 4:
        yield f"libchunkio/src holds the folders {', '.join(LAYERS)} and nothing else"
        return
    target = layer_of(include)
    if target is not None and LAYERS.index(target) > LAYERS.index(own):
        yield f"{own} must not include from {target}: layers go {' -> '.join(LAYERS)}"
    if quoted and (target is None or ".." in include):
        yield 'write private includes as "layer/file.hpp"'
    if HDF5.match(include) and own != "h5":
        yield "only h5 may include HDF5"
    if NVTX.match(include) and relative.as_posix() != TRACE:
        yield f"only {TRACE} may include NVTX"
    if CUDA.match(include) and own != "device":
        yield "only device may include CUDA"
    if TBB.match(include) and own not in ("io", "pipeline"):
        yield "only io and pipeline may include TBB"
    if CODECS.match(include) and own not in ("h5", "io"):
        yield "only h5 and io may include codecs and I/O libraries"
    if OPENCV.match(include):
        yield "the library does not use OpenCV"


def check_public_header(relative, include, quoted):
    if not quoted and OPT_IN_HEADERS.get(relative.name) == include:
        return
    name = include.rpartition("/")[2]
    if include.startswith("chunkio/") and name in OPT_IN_HEADERS and relative.name not in OPT_IN_HEADERS:
        yield "a header that needs a third party is for programs to include"
    if quoted or ("/" in include and not include.startswith("chunkio/")) or include.endswith(".h"):
        yield "public headers include the C++ standard library and <chunkio/...> only"


def check_program(relative, include):
    """Problems of one include in tools/ or samples/."""
    if layer_of(include) is not None or "libchunkio" in include:
        yield "programs use the public headers <chunkio/...> only"
    if HDF5.match(include):
        yield "only libchunkio/src/h5 may include HDF5"
    if CUDA.match(include) or NVTX.match(include):
        yield "only libchunkio/src/device may include CUDA"
    if relative.parts[0] == "tools" and OPENCV.match(include):
        if not OPENCV_TOOLS.search(relative.stem) and include != OPENCV_SETTINGS:
            yield "within tools, only decoding, encoding, transforming and previewing may include OpenCV"


def check_file(relative, text):
    for match in INCLUDE.finditer(text):
        include = match.group(1) or match.group(2)
        quoted = match.group(2) is not None
        line = text.count("\n", 0, match.start(1 if not quoted else 2)) + 1
        if relative.parts[:2] == ("libchunkio", "src"):
            problems = check_library_source(relative, include, quoted)
        elif relative.parts[:2] == ("libchunkio", "include"):
            problems = check_public_header(relative, include, quoted)
        elif relative.parts[0] in ("tools", "samples"):
            problems = check_program(relative, include)
        else:
            problems = []
        for problem in problems:
            yield f"{relative}:{line}: includes {include}: {problem}"


def check_tree(root):
    """All broken rules below `root`, one line each, and how many files were looked at."""
    problems = []
    num_files = 0
    for top in ("libchunkio", "tools", "samples"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                num_files += 1
                problems += check_file(path.relative_to(root), path.read_text(encoding="utf-8"))
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
