"""Writes a C++ file of the examples at the head of public headers, so that the compiler checks them.

    header_examples.py FILE.cpp INCLUDE_FOLDER HEADER...

The example of a header is the first indented block of its leading comment. It becomes the body of a function, which may
use what tests/support/header_examples.hpp declares; compilers name its lines by those of the header. Exits with 1
and names the headers that have no example.
"""

import pathlib
import re
import sys

PRELUDE = "support/header_examples.hpp"
EXAMPLE = re.compile(r"(?:///(?! {5}).*\n)*((?:/// {5}.*\n)+)")


def example_of(text):
    """The number of its first line, from 1, and its lines; None if the comment at the head of `text` has none."""
    match = EXAMPLE.match(text)
    if match is None:
        return None
    return text.count("\n", 0, match.start(1)) + 1, re.sub(r"^/// {5}", "", match[1], flags=re.MULTILINE)


def function_of(header, name):
    found = example_of(header.read_text(encoding="utf-8"))
    if found is None:
        print(f"{header}:1: error: the comment at the head of {name} has no example", file=sys.stderr)
        return None
    line, code = found
    return f'void {re.sub(r"[^a-z]", "_", name)}() {{\n#line {line} "{header}"\n{code}}}\n'


def main():
    program, folder, *headers = map(pathlib.Path, sys.argv[1:])
    names = [header.relative_to(folder).as_posix() for header in headers]
    functions = [function_of(header, name) for header, name in zip(headers, names)]
    if not functions or None in functions:
        return 1
    includes = "".join(f"#include <{name}>\n" for name in names)
    program.write_text(f'{includes}#include "{PRELUDE}"\n\nnamespace example {{\n{"".join(functions)}}}  // namespace example\n',
                       encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
