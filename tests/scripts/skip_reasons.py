"""Passes on what ctest prints and puts before its summary why tests were skipped.

    ctest --output-junit REPORT | skip_reasons.py REPORT
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def reason(output):
    """What GoogleTest, a script of ours, or any other program prints."""
    match = re.search(r": Skipped\n(.+)", output) or re.search(r"^skipped: (.+)", output, re.MULTILINE)
    if match:
        return match[1].strip()
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def skipped_tests(report):
    """Names and reasons of the skipped tests in a JUnit file."""
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is not None:
            yield case.get("name"), reason(case.findtext("system-out") or "")


def main():
    report = pathlib.Path(sys.argv[1])
    summary = []
    for line in sys.stdin:
        if summary or re.match(r"\d+% tests passed", line):
            summary.append(line)
        else:
            print(line, end="", flush=True)
    skipped = list(skipped_tests(report)) if report.is_file() else []
    if skipped:
        print("Skipped:")
        for name, why in skipped:
            print(f"  {name}: {why}")
        print()
    print(*summary, sep="", end="", flush=True)


if __name__ == "__main__":
    main()
