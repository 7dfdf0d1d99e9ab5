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

# What was drawn, from top to bottom. Boxes are [left, top, right, bottom] in CSS pixels.
READER = r"""
<script>
(() => {
  const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
  const style = (e, name) => getComputedStyle(e).getPropertyValue(name);
  const title = e => { const t = e.querySelector(':scope > title'); return t ? t.textContent : ''; };
  const section = e => { const s = e.closest('section'); return s ? s.id : ''; };
  const texts = svg => [...svg.querySelectorAll('text')].map(
      t => ({text: t.textContent, box: box(t), fill: style(t, 'fill'), halo: style(t, 'stroke') !== 'none'}));
  const heat = svg => ({
    section: section(svg), label: svg.getAttribute('aria-label'), role: svg.getAttribute('role'), box: box(svg),
    texts: texts(svg),
    cells: [...svg.querySelectorAll('g.c')].map(g => ({
      index: +g.dataset.i, value: g.dataset.v === undefined ? null : +g.dataset.v, classes: [...g.classList],
      box: box(g.querySelector('.f')), fill: style(g.querySelector('.f'), 'fill'), title: title(g),
      ring: g.querySelector('.ring') !== null, early: g.querySelector('.early') !== null,
      tie: g.querySelector('circle') !== null,
      texts: [...g.querySelectorAll('text')].map(t => ({text: t.textContent, box: box(t), fill: style(t, 'fill')})),
    })),
  });
  const bars = svg => ({
    section: section(svg), label: svg.getAttribute('aria-label'), box: box(svg), texts: texts(svg),
    bars: [...svg.querySelectorAll('g.bar')].map(g => ({
      title: title(g), texts: [...g.querySelectorAll('text')].map(t => t.textContent),
      parts: [...g.querySelectorAll('g.part')].map(p => ({
        value: +p.dataset.v, box: box(p.querySelector('rect')), fill: style(p.querySelector('rect'), 'fill')})),
    })),
    limits: [...svg.querySelectorAll('g.limit')].map(g => ({
      value: +g.dataset.v, box: box(g.querySelector('path')), title: title(g)})),
  });
  const points = svg => ({
    section: section(svg), label: svg.getAttribute('aria-label'), box: box(svg), texts: texts(svg),
    points: [...svg.querySelectorAll('g.pt')].map(g => {
      const b = box(g.querySelector('.dot'));
      return {x: +g.dataset.x, y: +g.dataset.v, at: [(b[0] + b[2]) / 2, (b[1] + b[3]) / 2],
              series: [...g.classList].find(c => /^p\d$/.test(c)), ring: g.querySelector('.ring') !== null,
              title: title(g)};
    }),
  });
  const all = (selector, read) => [...document.querySelectorAll(selector)].map(read);
  const result = {
    requests: performance.getEntriesByType('resource').map(e => e.name),
    title: document.title, background: style(document.body, 'background-color'), ink: style(document.body, 'color'),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    elements: [...new Set(all('*', e => e.localName))].filter(n => n !== 'script'),
    scripts: document.scripts.length,
    headings: all('h1, h2', e => e.textContent), warnings: all('.warning', e => e.textContent),
    verdict: all('.verdict p', e => e.textContent), tiles: all('.tiles div', e => e.innerText.split('\n')),
    facts: all('.facts dt', e => [e.textContent, e.nextElementSibling.textContent]),
    notes: all('ul.notes li', e => e.textContent),
    heat: all('svg.heat', heat), bars: all('svg.wide', bars), points: all('svg.points', points),
    legends: all('svg.legend', svg => ({section: section(svg), texts: texts(svg), box: box(svg)})),
    tables: all('table', t => ({
      section: t.closest('details').id, head: [...t.tHead.rows[0].cells].map(c => c.textContent),
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
