"""A drawing that becomes an SVG file: light or dark as the reader's system says, on a background of its own.

It needs no script, no font and no other file, so that code hosts show it as an image. The colours are classes of a style sheet.
"""

from xml.sax.saxutils import escape

FONT = "-apple-system, 'Segoe UI', Roboto, Helvetica, Arial, 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
# class: (property, light, dark)
COLOURS = {
    "page": ("fill", "#ffffff", "#0d1117"),
    "ink": ("fill", "#1f2328", "#e6edf3"),
    "soft": ("fill", "#59636e", "#9aa4af"),
    "own": ("fill", "#0b62c4", "#58a6ff"),
    "peer": ("fill", "#7a838d", "#7a838d"),
    "track": ("fill", "#eaeef2", "#1f262e"),
    "edge": ("stroke", "#59636e", "#9aa4af"),
    "rule": ("stroke", "#1f2328", "#e6edf3"),
}


def short(value):
    return f"{value:.2f}".rstrip("0").rstrip(".")


def text_width(text, size):
    """Of the widest of the fonts (DejaVu Sans), in bold: nothing may overlap in any of them."""
    return 0.66 * size * len(text)


class Drawing:
    def __init__(self, width, height, title, description):
        self.width, self.height, self.parts = width, height, []
        self.title, self.description = title, description

    def style(self):
        used = [name for name in COLOURS if any(f'class="{name}' in p for p in self.parts) or name == "page"]
        light, dark = (" ".join(f".{name}{{{COLOURS[name][0]}:{COLOURS[name][i]}}}" for name in used) for i in (1, 2))
        return (f"text{{font-family:{FONT}}} .bold{{font-weight:600}} .mono{{font-family:{MONO};white-space:pre}} .edge,.rule{{fill:none}}\n{light}\n"
                f"@media (prefers-color-scheme: dark){{{dark}}}")

    def text(self, x, y, text, size=18, kind="ink", anchor="start"):
        self.parts.append(f'<text class="{kind}" x="{short(x)}" y="{short(y)}" font-size="{size}" '
                          f'text-anchor="{anchor}">{escape(text)}</text>')

    def rect(self, x, y, width, height, kind, radius=3.0, more=""):
        self.parts.append(f'<rect class="{kind}" x="{short(x)}" y="{short(y)}" width="{short(width)}" '
                          f'height="{short(height)}" rx="{short(radius)}"{more}/>')

    def path(self, points, kind, width=1.5, more=""):
        self.parts.append(f'<path class="{kind}" d="{points}" stroke-width="{short(width)}"{more}/>')

    def heading(self, title, subtitle):
        """Lines of a title and of a subtitle. Returns the y below them."""
        y = 14
        for line in title:
            y += 30
            self.text(24, y, line, 24, "ink bold")
        y += 6
        for line in subtitle:
            y += 25
            self.text(24, y, line, 17, "soft")
        return y + 14

    def svg(self):
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {short(self.height)}" width="{self.width}" '
            f'height="{short(self.height)}" role="img" aria-labelledby="title desc">',
            f'<title id="title">{escape(self.title)}</title>', f'<desc id="desc">{escape(self.description)}</desc>',
            f"<style>{self.style()}</style>", f'<rect class="page" width="{self.width}" height="{short(self.height)}"/>',
            *self.parts, "</svg>", ""])
