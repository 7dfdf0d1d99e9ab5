"""A headless Chromium, for pages that programs write.

A page is opened as it is, and a second time with a script that reads back what was drawn: where each thing
lies, its colour and its text. The pages forbid scripts, so that policy is taken out of the second copy.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

NAMES = ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome-stable", "google-chrome")
TIMEOUT_SECONDS = 240
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*/>')
MARK = "read-back"

# What was drawn, from top to bottom.
READER = r"""
<script>
(() => {
  const style = (e, name) => getComputedStyle(e).getPropertyValue(name);
  const section = e => { const s = e.closest('section'); return s ? s.id : ''; };
  const heat = table => ({
    section: section(table), label: table.getAttribute('aria-label'),
    columns: [...table.querySelectorAll('tfoot [scope=col]')].map(e => e.textContent),
    rows: [...table.querySelectorAll('tbody th')].map(e => e.textContent),
    cells: [...table.querySelectorAll('td[data-i]')].map(e => ({
      index: +e.dataset.i, value: e.dataset.v === undefined ? null : +e.dataset.v, classes: [...e.classList],
      column: e.cellIndex - 1, row: e.parentElement.sectionRowIndex, fill: style(e, 'background-color'),
      ink: style(e, 'color'), hatched: style(e, 'background-image').includes('gradient'), title: e.title,
      dashed: style(e, 'border-top-style') === 'dashed', ring: style(e, 'outline-style') !== 'none',
      texts: e.innerText.trim().split('\n'), overflow: e.scrollWidth - e.clientWidth,
    })),
  });
  const all = (selector, read) => [...document.querySelectorAll(selector)].map(read);
  const result = {
    requests: performance.getEntriesByType('resource').map(e => e.name),
    title: document.title, background: style(document.body, 'background-color'), ink: style(document.body, 'color'),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    elements: [...new Set(all('*', e => e.localName))].filter(n => n !== 'script'),
    scripts: document.scripts.length,
    headings: all('h1, h2', e => e.textContent), warnings: all('.warning', e => e.textContent),
    verdict: all('.verdict p', e => e.textContent),
    facts: all('.facts dt', e => [e.textContent, e.nextElementSibling.textContent]),
    notes: all('ul.notes li', e => e.textContent),
    heat: all('table.heat', heat),
    bars: all('td.bar', e => ({
      section: section(e), value: +e.dataset.v, percent: parseFloat(style(e, 'background-size')), text: e.textContent})),
    tables: all('table:not(.heat)', t => ({
      section: section(t), head: [...t.tHead.rows[0].cells].map(c => c.textContent),
      rows: [...t.tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent))})),
  };
  const pre = document.createElement('pre');
  pre.id = 'READ';
  pre.textContent = JSON.stringify(result);
  document.body.append(pre);
})();
</script>
""".replace("READ", MARK)


def find():
    """The program, or None."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


def run(page, *arguments, width=1440, height=1000, dark=False):
    """Opens `page`, a path or URL, and does what the arguments say; stdout and what the browser logged."""
    url = page if str(page).startswith("http:") else pathlib.Path(page).resolve().as_uri()
    with tempfile.TemporaryDirectory(prefix="browser-") as profile:
        command = [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   # Neither may a page reach another host, nor the browser its maker.
                   "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                   "--enable-logging=stderr", f"--user-data-dir={profile}", f"--window-size={width},{height}",
                   f"--blink-settings=preferredColorScheme={0 if dark else 1}",
                   *arguments, url]
        result = subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS, check=False)
    log = result.stderr.decode(errors="replace")
    if result.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {result.returncode}: {log[-2000:]}")
    return result.stdout.decode(), log


def console(log):
    """What the page itself said: errors, warnings, refusals of its policy."""
    return [line for line in log.splitlines() if "CONSOLE" in line]


def read_back(page, **options):
    """What was drawn of `page`, see READER."""
    page = pathlib.Path(page)
    text = page.read_text(encoding="utf-8")
    text, policies = POLICY.subn("", text)
    if policies != 1:
        raise AssertionError(f"{page} has {policies} policies")
    copy = page.with_name(page.stem + ".read.html")
    copy.write_text(text.replace("</body>", READER + "</body>"), encoding="utf-8")
    try:
        dom, log = run(copy, "--dump-dom", **options)
    finally:
        copy.unlink()
    found = re.search(rf'<pre id="{MARK}">(.*?)</pre>', dom, re.DOTALL)
    if found is None:
        raise AssertionError(f"nothing was read back: {console(log)}")
    encoded = found.group(1)
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", "\u00a0"), ("&amp;", "&")):
        encoded = encoded.replace(entity, character)
    return json.loads(encoded)
