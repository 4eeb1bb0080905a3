"""Self-contained HTML reports: nothing is loaded, and only the scripts that draw plots run.

All text is plain, and escaped here: names and titles never become markup. Figures are embedded as SVG; plots are drawn
by Plotly, which is embedded as well. Colours follow the reader's preference, light or dark.
"""

from __future__ import annotations

import html
import json
import os
import re
from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree as ET

from .._core.errors import import_optional, printable
from ..files.files import replacing
from ..plots.interactive import PlotlyFigure
from ..plots.palette import DARK, FAINT, GRID, INK, LIGHT, PAPER

# Figures drawn in these colours follow the page: text and lines, background, secondary elements, grids.
_FOLLOWING = {INK: "var(--ink)", PAPER: "var(--paper)", FAINT: "var(--faint)", GRID: "var(--grid)"}

# Control characters except newlines and tabs: some affect the following text, and XML forbids them.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

Verdict = Literal["yes", "partly", "no", "open"]
_MARKS: dict[Verdict, str] = {"yes": "✓", "partly": "◐", "no": "✗", "open": "?"}

# Elements allowed in a figure. Others could run, load or hide something.
_ELEMENTS = {"svg", "g", "defs", "path", "use", "text", "tspan", "clipPath", "rect", "circle", "line", "polyline"}
_DROPPED = {"metadata", "style", "title", "desc"}
# Length from which an entry of a table is wrapped.
_LONG = 28
# Height of a page in a notebook, in pixels.
_FRAME_HEIGHT = 720
_ALLOWED = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def escape(text: str) -> str:
    """Return plain text as HTML, with escaped control characters."""
    return html.escape(_without_control(text))


def _without_control(text: str) -> str:
    return _CONTROL.sub(lambda match: printable(match[0]), text)


class Section:
    """A section of a report: a sequence of blocks.

    All methods return the section, so that calls can be chained.
    """

    def __init__(self, title: str, level: int, ids: set[str], *, folded: bool = False) -> None:
        self.title = title
        self.parts: list[Section] = []
        self.id = _new_id(title, ids)
        self._level, self._ids, self._folded, self._plotted = level, ids, folded, False
        self._blocks: list[str | Section] = []

    def part(self, title: str) -> Section:
        """Begin a subsection, and return it."""
        new = Section(title, self._level + 1, self._ids)
        self.parts.append(new)
        self._blocks.append(new)
        return new

    def folded(self, title: str) -> Section:
        """Begin a collapsed section, and return it."""
        new = Section(title, self._level, self._ids, folded=True)
        self._blocks.append(new)
        return new

    def text(self, *paragraphs: str) -> Section:
        """Add paragraphs."""
        return self._add(*(f"<p>{escape(text)}</p>" for text in paragraphs))

    def points(self, texts: Iterable[str], title: str = "") -> Section:
        """Add a list, unless it is empty."""
        items = "".join(f"<li>{escape(text)}</li>" for text in texts)
        heading = f"<p class='of-list'>{escape(title)}</p>" if title else ""
        return self._add(f"{heading}<ul>{items}</ul>") if items else self

    def note(self, text: str) -> Section:
        """Add a remark in a box."""
        return self._add(f"<p class='note'>{escape(text)}</p>")

    def code(self, text: str) -> Section:
        """Add code."""
        return self._add(f"<pre tabindex='0'><code>{escape(text)}</code></pre>")

    def facts(self, facts: Mapping[str, object]) -> Section:
        """Add names with values."""
        items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(str(facts[name]))}</dd></div>" for name in facts)
        return self._add(f"<dl>{items}</dl>") if items else self

    def verdicts(self, verdicts: Iterable[tuple[Verdict, str, str]]) -> Section:
        """Add a list of findings: a verdict (holds, partly, does not hold, open), a few words, and a sentence."""
        items = "".join(
            f"<li class='{verdict}'><span class='mark' aria-hidden='true'>{_MARKS[verdict]}</span>"
            f"<span><strong>{escape(words)}</strong> {escape(text)}</span></li>"
            for verdict, words, text in verdicts
        )
        return self._add(f"<ul class='verdicts'>{items}</ul>") if items else self

    def table(
        self,
        header: Sequence[str],
        rows: Iterable[Sequence[str]],
        caption: str,
        strong: Collection[int] = (),
    ) -> Section:
        """Add a table. The first entry of each row is its heading; rows given by number are highlighted."""
        head = "".join(f"<th scope='col'>{escape(entry)}</th>" for entry in header)
        body = "".join(
            f"<tr{' class=strong' if i in strong else ''}><th scope='row'>{escape(first)}</th>"
            + "".join(f"<td{' class=long' if len(entry) > _LONG else ''}>{escape(entry)}</td>" for entry in others)
            + "</tr>"
            for i, (first, *others) in enumerate(rows)
        )
        # A caption element would be as wide as the table and scroll with it.
        name = _new_id("table", self._ids)
        return self._add(
            f"<p class='caption' id='{name}'>{escape(caption)}</p>"
            f"<div class='wide' role='region' tabindex='0' aria-labelledby='{name}'><table aria-labelledby='{name}'>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def figure(self, svg: str, description: str, caption: str = "") -> Section:
        """Add a figure with a description as alternative text.

        Raises
        ------
        ValueError
            If the SVG has anything but shapes and text.
        """
        name = _new_id("figure", self._ids)
        words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        return self._add(f"<figure>{inline_svg(svg, name, description)}{words}</figure>")

    def plot(self, figures: Mapping[str, PlotlyFigure], description: str, caption: str = "") -> Section:
        """Add an interactive plot, with a selection by name if there are several figures.

        The description is the alternative text.
        """
        name, data = _new_id("plot", self._ids), _new_id("data", self._ids)
        self._plotted = True
        choice = ""
        if len(figures) > 1:
            options = "".join(f"<option>{escape(option)}</option>" for option in figures)
            select = f"<select data-of='{name}' autocomplete='off'>{options}</select>"
            choice = f"<p class='choice'><label>Show {select}</label></p>"
        words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        return self._add(
            f"<figure>{choice}<div class='drawing' id='{name}' role='img' "
            f"aria-label='{escape(description)}' data-views='{data}'></div><noscript><p class='note'>This figure is "
            "drawn by a script of this page: allow scripts to run.</p></noscript><script type='application/json' "
            f"id='{data}'>{_as_json(figures)}</script>{words}</figure>"
        )

    @property
    def plotted(self) -> bool:
        """Whether the section contains a plot."""
        return self._plotted or any(block.plotted for block in self._blocks if isinstance(block, Section))

    def html(self) -> str:
        """Return the section as HTML."""
        blocks = (block.html() if isinstance(block, Section) else block for block in self._blocks)
        if self._folded:
            summary = f"<summary id='{self.id}'>{escape(self.title)}</summary>"
            return "\n".join(["<details>", summary, *blocks, "</details>"])
        heading = f"<h{self._level} id='{self.id}'>{escape(self.title)}</h{self._level}>"
        return "\n".join([f"<section aria-labelledby='{self.id}'>", heading, *blocks, "</section>"])

    def _add(self, *blocks: str) -> Section:
        self._blocks += blocks
        return self


class Page(Section):
    """An HTML report: a title, a summary, blocks, and sections with a table of contents.

    Parameters
    ----------
    title : str
        Title of the page.
    lead : sequence of str
        Paragraphs of the summary.
    footer : str, default=""
        The last line.

    Examples
    --------
    >>> from plstream.report import Page
    >>> page = Page("Fish & chips", ["Which of the two sells better?"])
    >>> section = page.part("Sales")
    >>> section = section.text("In a week.").table(["Dish", "Sold"], [["<fish>", "12"], ["chips", "30"]], "Dishes sold")
    >>> html = page.html()
    >>> "<title>Fish &amp; chips</title>" in html, "&lt;fish&gt;" in html, "<script" in html
    (True, True, False)
    """

    def __init__(self, title: str, lead: Sequence[str] = (), footer: str = "") -> None:
        super().__init__(title, 1, {"contents"})
        self.lead, self.footer = lead, footer

    def html(self) -> str:
        """Return the page."""
        own = [block for block in self._blocks if isinstance(block, str)]
        title = escape(self.title)
        drawing = scripts() if self.plotted else ()
        return "\n".join(
            [
                "<!DOCTYPE html>",
                '<html lang="en">',
                "<head>",
                '<meta charset="utf-8">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                # An injected script would neither run nor load.
                f'<meta http-equiv="Content-Security-Policy" content="{_allowed(drawing)}">',
                '<meta name="color-scheme" content="light dark">',
                f"<title>{title}</title>",
                f"<style>{_style()}</style>",
                "</head>",
                "<body>",
                "<main>",
                f"<header><h1 id='{self.id}'>{title}</h1>",
                *(f"<p class='lead'>{escape(text)}</p>" for text in self.lead),
                "</header>",
                *own,
                self._contents(),
                *(part.html() for part in self.parts),
                "</main>",
                f"<footer>{escape(self.footer)}</footer>" if self.footer else "",
                *(f"<script>{script}</script>" for script in drawing),
                "</body>",
                "</html>",
                "",
            ]
        )

    def _repr_html_(self) -> str:
        """Return the page for a notebook, in a sandboxed frame."""
        # Its scripts run without the notebook's origin, and have no access to the notebook or its server.
        return (
            f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(self.html())}" width="100%" '
            f'height="{_FRAME_HEIGHT}" style="border: 1px solid #8888" title="{escape(self.title)}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<Page {printable(self.title)!r}: write(path) writes it to a file>"

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
        """Write the page to a file atomically."""
        with replacing(path, overwrite=overwrite) as file:
            # Names may contain lone surrogates, which cannot be encoded.
            file.write(self.html().encode(errors="replace"))
        return Path(path)

    def _contents(self) -> str:
        if len(self.parts) < 2:
            return ""
        items = "".join(f"<li><a href='#{part.id}'>{escape(part.title)}</a></li>" for part in self.parts)
        return f"<nav aria-labelledby='contents'><h2 id='contents'>Contents</h2><ol>{items}</ol></nav>"


def _allowed(drawing: Collection[str]) -> str:
    """Return the content security policy, which allows only these scripts, and images saved from plots."""
    digests = (b64encode(sha256(script.encode()).digest()).decode() for script in drawing)
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"{_ALLOWED}; script-src {hashes}; img-src data: blob:" if drawing else _ALLOWED


@cache
def scripts() -> tuple[str, ...]:
    """Return the scripts that draw plots: Plotly's library, and the one that calls it. Neither loads anything.

    Raises
    ------
    ImportError
        If Plotly is not installed.
    """
    library = import_optional("plotly.offline", "An HTML report with interactive plots", "report").get_plotlyjs()
    texts = library, _file("drawing.js")
    # Line endings as normalized by browsers, which compare hashes.
    return tuple(text.replace("\r\n", "\n").replace("</script", "<\\/script") for text in texts)


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _as_json(figures: Mapping[str, PlotlyFigure]) -> str:
    """Return figures as JSON without characters that could end the enclosing element."""
    parts = [{"name": name, **figure._asdict()} for name, figure in figures.items()]
    text = json.dumps(_shown(parts), allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _shown(part: Any) -> Any:
    """Return a JSON value with escaped control characters."""
    match part:
        case str():
            return _without_control(part)
        case dict():
            return {key: _shown(value) for key, value in part.items()}
        case list() | tuple():
            return [_shown(value) for value in part]
    return part


def inline_svg(svg: str, name: str, description: str) -> str:
    """Return an SVG figure for embedding, with the colours of the page, and at most as wide as the page.

    The name is the prefix of all ids. Raises ValueError if it contains anything but shapes and text.
    """
    # The input is trusted, and the parser does not load external entities.
    root = ET.fromstring(_without_control(svg))  # noqa: S314
    if _local(root.tag) != "svg":
        raise ValueError(f"A figure is an svg element, not {_local(root.tag)}.")
    _clean(root, name)
    width = float(re.sub(r"[^\d.]", "", root.attrib.pop("width", "")) or 600)
    root.attrib.pop("height", None)
    root.attrib |= {
        "role": "img",
        "aria-label": _without_control(description),
        # A point is 4/3 of a pixel. Up to a third larger, if there is room.
        "style": f"max-width: {round(width * 4 / 3 * 4 / 3)}px",
    }
    return ET.tostring(root, encoding="unicode")


def _clean(element: ET.Element, name: str) -> None:
    """Drop elements that are useless in a page, and raise ValueError for those not allowed in a figure."""
    element.tag = _local(element.tag)
    if element.tag not in _ELEMENTS:
        raise ValueError(f"A figure must consist of shapes and text, without {element.tag}.")
    attributes = {_local(key): value for key, value in element.attrib.items()}
    element.attrib.clear()
    for key, value in attributes.items():
        if key.startswith("on"):
            raise ValueError(f"A figure must consist of shapes and text, without {key}.")
        if key not in {"version", "space"}:
            element.attrib[key] = f"{name}-{value}" if key == "id" else _value(key, value, name)
    for child in [*element]:
        if not isinstance(child.tag, str) or _local(child.tag) in _DROPPED:
            element.remove(child)
        else:
            _clean(child, name)


def _value(key: str, value: str, name: str) -> str:
    """Return the value of an attribute, with the ids and colours of the page."""
    if key == "href":
        value = f"url({value})"
    if re.search(r"url\((?!#)", value):
        raise ValueError(f"A figure must not refer to {value}, which is outside of it.")
    value = value.replace("url(#", f"url(#{name}-")
    for colour, variable in _FOLLOWING.items():
        value = value.replace(colour, variable)
    return value[4:-1] if key == "href" else value


def _local(name: str) -> str:
    """Return a name without its namespace, which HTML implies for svg elements."""
    return name.rsplit("}", 1)[-1]


def _new_id(title: str, ids: set[str]) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "part"
    number, name = 1, plain
    while name in ids:
        number += 1
        name = f"{plain}-{number}"
    ids.add(name)
    return name


def _style() -> str:
    light, dark = ("; ".join(f"{name}: {colour}" for name, colour in theme.items()) for theme in (LIGHT, DARK))
    dark_rule = f"@media screen and (prefers-color-scheme: dark) {{ :root:not(.printed) {{ {dark} }} }}"
    return f"\n:root {{ {light} }}\n{dark_rule}\n\n{_file('page.css')}"
