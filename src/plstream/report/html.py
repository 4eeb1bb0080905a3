"""Pages in HTML that are one file: nothing is loaded from elsewhere, and no script runs but those that draw plots.

All text is plain, and escaped here: nothing that a name or a title holds is ever markup. Figures are SVG, and become
part of the page; plots are drawn by Plotly, which then is part of the page. Colours follow what the reader prefers,
light or dark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

from ..files.files import replacing
from ..plots.palette import FAINT, GRID, INK, PAPER
from .interactive import View, as_json, hash_of, scripts

# Figures that are drawn in these colours follow the page: text and lines, background, what is less important, grids.
_FOLLOWING = {INK: "var(--ink)", PAPER: "var(--paper)", FAINT: "var(--faint)", GRID: "var(--grid)"}
_DARK = {INK: "#e6e9ec", PAPER: "#16191d", FAINT: "#a3adb7", GRID: "#363c43"}
# Colours that plots tell things apart by: the variables --c0, --c1 and so on.
LIGHT_COLOURS = ("#0460bd", "#c27600", "#0b8f91", "#9f480a", "#614cff", "#726440", "#2b8cbd", "#8b8348", "#b8336a")
DARK_COLOURS = ("#5aa9ff", "#f0a63c", "#34c9cb", "#e08a50", "#a194ff", "#c0b083", "#7cc8f0", "#d3cb8a", "#f08ab4")
# Low, middle and high values: --s0, --s1 and --s2.
LIGHT_SCALE = ("#d98200", "#c2405f", "#3b1470")
DARK_SCALE = ("#9168d0", "#e2637d", "#ffd27a")

Verdict = Literal["yes", "partly", "no", "open"]
_MARKS: dict[Verdict, str] = {"yes": "✓", "partly": "◐", "no": "✗", "open": "?"}

# What a figure may consist of. Anything else could run, load or hide something.
_ELEMENTS = {"svg", "g", "defs", "path", "use", "text", "tspan", "clipPath", "rect", "circle", "line", "polyline"}
_DROPPED = {"metadata", "style", "title", "desc"}
_ALLOWED = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class Section:
    """A part of a page: blocks, one after the other.

    All methods return the section, so that calls can be chained.
    """

    def __init__(self, title: str, level: int, ids: set[str]) -> None:
        self.title = title
        self.parts: list[Section] = []
        self.id = _new_id(title, ids)
        self._level, self._ids, self._plotted = level, ids, False
        self._blocks: list[str | Section] = []

    def part(self, title: str) -> Section:
        """Begin a section of this section, and return it."""
        new = Section(title, self._level + 1, self._ids)
        self.parts.append(new)
        self._blocks.append(new)
        return new

    def folded(self, title: str) -> Section:
        """Begin something long that is shown when one asks for it, and return it."""
        new = _Folded(title, self._level, self._ids)
        self._blocks.append(new)
        return new

    def text(self, *paragraphs: str) -> Section:
        """Add paragraphs."""
        return self._add(*(f"<p>{escape(text)}</p>" for text in paragraphs))

    def points(self, texts: Iterable[str], title: str = "") -> Section:
        """Add a list, if there is something in it."""
        items = "".join(f"<li>{escape(text)}</li>" for text in texts)
        heading = f"<p class='of-list'>{escape(title)}</p>" if title else ""
        return self._add(f"{heading}<ul>{items}</ul>") if items else self

    def note(self, text: str) -> Section:
        """Add a remark in a box."""
        return self._add(f"<p class='note'>{escape(text)}</p>")

    def code(self, text: str) -> Section:
        """Add lines that are to be typed."""
        return self._add(f"<pre tabindex='0'><code>{escape(text)}</code></pre>")

    def facts(self, facts: Mapping[str, object]) -> Section:
        """Add names with values."""
        items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(str(facts[name]))}</dd></div>" for name in facts)
        return self._add(f"<dl>{items}</dl>") if items else self

    def verdicts(self, verdicts: Iterable[tuple[Verdict, str, str]]) -> Section:
        """Add a list of what holds, holds partly, does not hold, or is open: verdict, its words, and a sentence."""
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
        """Add a table. The first entry of a row is what the row is about; some rows, by number, stand out."""
        head = "".join(f"<th scope='col'>{escape(entry)}</th>" for entry in header)
        body = "".join(
            f"<tr{' class=strong' if i in strong else ''}><th scope='row'>{escape(first)}</th>"
            + "".join(f"<td>{escape(entry)}</td>" for entry in others)
            + "</tr>"
            for i, (first, *others) in enumerate(rows)
        )
        # Not a caption element, which would be as wide as the table and scroll with it.
        name = _new_id("table", self._ids)
        return self._add(
            f"<p class='caption' id='{name}'>{escape(caption)}</p>"
            f"<div class='wide' role='region' tabindex='0' aria-labelledby='{name}'><table aria-labelledby='{name}'>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def figure(self, svg: str, description: str, caption: str = "") -> Section:
        """Add a figure. The description is for those who do not see it.

        Raises
        ------
        ValueError
            If the SVG has anything but shapes and text.
        """
        name = _new_id("figure", self._ids)
        words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        return self._add(f"<figure>{inline_svg(svg, name, description)}{words}</figure>")

    def plot(self, views: Sequence[View], description: str, caption: str = "") -> Section:
        """Add a figure that one can point at and zoom into, with a choice of views if there are several.

        The description is for those who do not see it.
        """
        name, data = _new_id("plot", self._ids), _new_id("data", self._ids)
        self._plotted = True
        words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        return self._add(
            f"<figure>{_choice(views, name)}"
            f"<div class='drawing' id='{name}' role='img' aria-label='{escape(description)}' data-views='{data}'></div>"
            f"<noscript><p class='note'>This figure is drawn by a script of this page: allow it to run.</p></noscript>"
            f"<script type='application/json' id='{data}'>{as_json(views)}</script>{words}</figure>"
        )

    @property
    def plotted(self) -> bool:
        """Whether there is a plot in it."""
        return self._plotted or any(block.plotted for block in self._blocks if isinstance(block, Section))

    def html(self) -> str:
        """Return the section as HTML."""
        level = self._level
        heading = f"<h{level} id='{self.id}'>{escape(self.title)}</h{level}>"
        return "\n".join([f"<section aria-labelledby='{self.id}'>", heading, *self._inside(), "</section>"])

    def _inside(self) -> Iterator[str]:
        return (block.html() if isinstance(block, Section) else block for block in self._blocks)

    def _add(self, *blocks: str) -> Section:
        self._blocks += blocks
        return self


class _Folded(Section):
    """Blocks that are shown when one asks for them."""

    def html(self) -> str:
        """Return them as HTML."""
        summary = f"<summary id='{self.id}'>{escape(self.title)}</summary>"
        return "\n".join(["<details>", summary, *self._inside(), "</details>"])


class Page(Section):
    """A page: a title, a few sentences that say it all, blocks of its own, and sections with a table of contents.

    Parameters
    ----------
    title : str
        Of the page.
    lead : sequence of str
        Paragraphs that come first.
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
                # Even if something had slipped in, it would neither run nor load.
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

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
        """Write the page to a file, whole or not at all."""
        with replacing(path, overwrite=overwrite) as file:
            # Names may hold halves of signs, which no file can.
            file.write(self.html().encode(errors="replace"))
        return Path(path)

    def _contents(self) -> str:
        if len(self.parts) < 2:
            return ""
        items = "".join(f"<li><a href='#{part.id}'>{escape(part.title)}</a></li>" for part in self.parts)
        return f"<nav aria-labelledby='contents'><h2 id='contents'>Contents</h2><ol>{items}</ol></nav>"


def _allowed(drawing: Collection[str]) -> str:
    """Return what a browser may do with the page: these scripts run, and pictures of what they draw can be saved."""
    hashes = " ".join(map(hash_of, drawing))
    return f"{_ALLOWED}; script-src {hashes}; img-src data: blob:" if drawing else _ALLOWED


def _choice(views: Sequence[View], name: str) -> str:
    if len(views) < 2:
        return ""
    options = "".join(f"<option>{escape(view.name)}</option>" for view in views)
    return f"<p class='choice'><label>Show <select data-of='{name}' autocomplete='off'>{options}</select></label></p>"


def inline_svg(svg: str, name: str, description: str) -> str:
    """Return a figure as part of a page: with names of its own, colours that follow the page, and as wide as there is.

    Parameters
    ----------
    svg : str
        A file of SVG.
    name : str
        Goes before all its ids, so that those of other figures are different.
    description : str
        What can be seen.

    Returns
    -------
    html : str

    Raises
    ------
    ValueError
        If there is anything but shapes and text in it.
    """
    # Not from strangers, and a parser that knows no external entities.
    root = ET.fromstring(svg)  # noqa: S314
    if _local(root.tag) != "svg":
        raise ValueError(f"A figure is an svg element, not {_local(root.tag)}.")
    _clean(root, name)
    width = float(re.sub(r"[^\d.]", "", root.attrib.pop("width", "")) or 600)
    root.attrib.pop("height", None)
    root.attrib |= {
        "role": "img",
        "aria-label": description,
        # A point is 4/3 of a pixel. Up to a third larger, where there is room.
        "style": f"max-width: {round(width * 4 / 3 * 4 / 3)}px",
    }
    return ET.tostring(root, encoding="unicode")


def _clean(element: ET.Element, name: str) -> None:
    """Drop what is of no use in a page, and refuse what is not a figure."""
    element.tag = _local(element.tag)
    if element.tag not in _ELEMENTS:
        raise ValueError(f"A figure has shapes and text, and nothing like {element.tag}.")
    attributes = {_local(key): value for key, value in element.attrib.items()}
    element.attrib.clear()
    for key, value in attributes.items():
        if key.startswith("on"):
            raise ValueError(f"A figure has shapes and text, and nothing like {key}.")
        if key not in {"version", "space"}:
            element.attrib[key] = f"{name}-{value}" if key == "id" else _value(key, value, name)
    for child in [*element]:
        if not isinstance(child.tag, str) or _local(child.tag) in _DROPPED:
            element.remove(child)
        else:
            _clean(child, name)


def _value(key: str, value: str, name: str) -> str:
    """Return the value of an attribute, with the names and colours that it has in the page."""
    if key == "href":
        value = f"url({value})"
    if re.search(r"url\((?!#)", value):
        raise ValueError(f"A figure refers to {value}, which is not part of it.")
    value = value.replace("url(#", f"url(#{name}-")
    for colour, variable in _FOLLOWING.items():
        value = value.replace(colour, variable)
    return value[4:-1] if key == "href" else value


def _local(name: str) -> str:
    """Return a name without its namespace: HTML knows that of an svg element."""
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
    light = "; ".join(f"{name[4:-1]}: {colour}" for colour, name in _FOLLOWING.items())
    dark = "; ".join(f"{name[4:-1]}: {_DARK[colour]}" for colour, name in _FOLLOWING.items())
    return (
        f"\n:root {{ {light}; --yes: #17703a; --partly: #8a5a00; --no: #b3261e; --open: #5c6670; --shade: #f3f5f7; "
        f"{_numbered('c', LIGHT_COLOURS)}; {_numbered('s', LIGHT_SCALE)} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root:not(.printed) {{ {dark}; "
        f"--yes: #63c98b; --partly: #e0b04e; --no: #ff9389; --open: #a3adb7; --shade: #1f2429; "
        f"{_numbered('c', DARK_COLOURS)}; {_numbered('s', DARK_SCALE)} }} }}\n" + _CSS
    )


def _numbered(letter: str, colours: Iterable[str]) -> str:
    return "; ".join(f"--{letter}{i}: {colour}" for i, colour in enumerate(colours))


_CSS = """
* { box-sizing: border-box }
html { -webkit-text-size-adjust: 100% }
body { margin: 0; background: var(--paper); color: var(--ink); font: 17px/1.55 system-ui, sans-serif;
  overflow-wrap: anywhere }
main, footer { max-width: 54rem; margin: 0 auto; padding: 0 1.1rem }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 2rem 0 .8rem }
h2 { font-size: 1.45rem; line-height: 1.25; margin: 3rem 0 .6rem; padding-top: .8rem;
  border-top: 2px solid var(--grid) }
h3 { font-size: 1.12rem; line-height: 1.3; margin: 2rem 0 .5rem }
p { margin: 0 0 .8rem }
.lead { font-size: 1.08rem }
a { color: inherit; text-decoration-color: var(--faint); text-underline-offset: .15em }
ul, ol { padding-left: 1.3rem; margin: 0 0 1rem }
nav { background: var(--shade); border-radius: .5rem; padding: .9rem 1.2rem; margin: 1.5rem 0 }
nav h2 { font-size: 1rem; margin: 0 0 .3rem; padding: 0; border: 0 }
nav ol { margin: 0; columns: 14rem }
nav li { padding: .15rem 0; break-inside: avoid }
.of-list { margin: 0 0 .2rem }
.note { border-left: 4px solid var(--faint); padding: .5rem .9rem; background: var(--shade) }
.verdicts { list-style: none; padding: 0 }
.verdicts li { display: flex; gap: .7rem; margin: 0 0 .7rem }
.mark { flex: none; width: 1.6rem; height: 1.6rem; line-height: 1.6rem; border-radius: 50%; text-align: center;
  color: var(--paper); font-weight: 700; font-size: .95rem }
.yes .mark { background: var(--yes) } .yes strong { color: var(--yes) }
.partly .mark { background: var(--partly) } .partly strong { color: var(--partly) }
.no .mark { background: var(--no) } .no strong { color: var(--no) }
.open .mark { background: var(--open) } .open strong { color: var(--open) }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 10rem), 1fr)); gap: .8rem 1.2rem;
  margin: 1rem 0 }
dt { color: var(--faint); font-size: .85rem }
dd { margin: 0; font-weight: 600 }
pre { background: var(--shade); border-radius: .4rem; padding: .8rem 1rem; overflow-x: auto; font-size: .85rem }
.wide { overflow-x: auto; margin: 0 0 1rem; max-width: 100% }
table { border-collapse: collapse; font-size: .84rem; line-height: 1.35; font-variant-numeric: tabular-nums }
.caption { color: var(--faint); font-size: .88rem; margin: 1.2rem 0 .2rem }
th, td { padding: .34rem .5rem; text-align: right; white-space: nowrap; overflow-wrap: normal;
  border-bottom: 1px solid var(--grid) }
th:first-child { text-align: left; padding-left: 0; position: sticky; left: 0; background: var(--paper);
  font-weight: 400; white-space: normal; overflow-wrap: break-word; min-width: 9rem }
thead th { border-bottom: 2px solid var(--faint); font-weight: 600; vertical-align: bottom;
  white-space: normal; min-width: 3.9rem }
thead th:first-child { font-weight: 600 }
.strong th:first-child, .strong td { font-weight: 700 }
figure { margin: 1.2rem 0 }
figure > svg { display: block; width: 100%; height: auto; stroke-linejoin: round }
.drawing { width: 100%; height: 27rem; overflow: hidden }
.choice { margin: 0 0 .3rem; font-size: .88rem; color: var(--faint) }
select { font: inherit; color: var(--ink); background: var(--shade); border: 1px solid var(--faint);
  border-radius: .3rem; padding: .3rem .5rem; max-width: 100% }
details { margin: 0 0 1rem }
summary { cursor: pointer; padding: .35rem 0; font-weight: 600 }
figcaption { color: var(--faint); font-size: .88rem; margin-top: .4rem }
footer { color: var(--faint); font-size: .85rem; padding-top: 2rem; padding-bottom: 3rem }
:focus-visible { outline: 2px solid var(--faint); outline-offset: 2px }
@media (max-width: 30rem) { body { font-size: 16px } h1 { font-size: 1.5rem } h2 { font-size: 1.25rem }
  th:first-child { min-width: 7.5rem } .drawing { height: 22rem } }
@media print { body { font-size: 10pt } main { max-width: none } nav, .choice, .modebar { display: none }
  .wide { overflow: visible } table { font-size: 7.5pt } th, td { padding: .15rem .35rem }
  figure, tr { break-inside: avoid } h2, h3 { break-after: avoid }
  h2 { margin-top: 1.5rem } figure > svg { max-width: 12cm !important } }
"""
