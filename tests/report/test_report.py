"""HTML reports: valid, self-contained, and safe against any names and titles."""

import html
import re

import pytest

from plstream.plots.interactive import PlotlyFigure
from plstream.plots.palette import DARK, INK, LIGHT
from plstream.report import Page
from plstream.report.html import inline_svg

from ..browser import check_page, check_widths, in_browser

HOSTILE = "</title></style><script>document.title='ran'</script><img src=x onerror=alert(1)> \"'>&amp;"
SVG = """<?xml version="1.0"?>
<svg xmlns:xlink="http://www.w3.org/1999/xlink" xmlns="http://www.w3.org/2000/svg" width="300pt" height="150pt"
 viewBox="0 0 300 150" version="1.1">
<metadata><a href="https://example.org"/></metadata>
<defs><style>*{{fill: red}}</style><path id="mark" d="M0 0"/>
<clipPath id="cut"><rect width="9" height="9"/></clipPath></defs>
<g clip-path="url(#cut)"><use xlink:href="#mark" style="fill: {ink}; stroke: #0460bd"/><text>{text}</text></g>{more}
</svg>"""


def svg(text="a &lt; b", more=""):
    return SVG.format(ink=INK, text=text, more=more)


def make_page(text="plain"):
    page = Page(text, [text, text], text)
    page.points([text], text).note(text).table([text, "b"], [[text, text]], text, strong=[0])
    section = page.part(text).text(text, text).code(text).facts({text: text})
    section.verdicts([("yes", text, text), ("no", "", ""), ("open", "", ""), ("partly", "", "")])
    section.figure(svg(), f"{text} and twenty letters more", text)
    section.part(text).figure(svg(), f"{text} and twenty letters more")
    page.part(text).text(text)
    return page


def test_a_page_is_sound():
    html = make_page().html()
    page = check_page(html)
    assert html.startswith("<!DOCTYPE html>\n<html lang=")
    assert page.tags.count("svg") == 2
    assert page.tags.count("nav") == 1
    assert ("tr", "class", "strong") in page.attributes
    assert any(value.startswith("default-src 'none'; style-src 'unsafe-inline';") for value in page.values("content"))


def test_text_is_never_markup():
    plain, hostile = check_page(make_page().html()), check_page(make_page(HOSTILE).html())
    assert hostile.tags == plain.tags
    # What is read is what was written.
    assert hostile.texts.count(HOSTILE) >= 15
    labels = [value for value in hostile.values("aria-label") if value.startswith(HOSTILE)]
    assert len(labels) == 2


def test_control_characters_are_written_out():
    steering = "a\x00\x08\x1b[31m\x7f\x9bb\n\tc"
    page = Page(steering, [steering], steering)
    section = page.part(steering).text(steering).facts({steering: steering}).code(steering)
    section.table([steering, "b"], [[steering, steering]], steering)
    figure = PlotlyFigure([{"name": steering, "text": (steering, [steering]), "x": [1.0, None]}], {"title": steering})
    section.plot({steering: figure, "other": figure}, steering, steering)
    svg = "<svg width='10' xmlns='http://www.w3.org/2000/svg'><text>a\x1bb</text></svg>"
    html = section.figure(svg, steering).html()
    found = [sign for sign in html if not sign.isprintable() and sign not in "\n\t"]
    assert found == []
    assert "\\u00" not in html.replace("\\u003c", "").replace("\\u003e", "").replace("\\u0026", "")
    assert r"a\x00\x08\x1b[31m\x7f\x9bb" in html


def test_contents_only_if_there_are_several_parts():
    page = Page("One")
    page.part("a")
    assert "<nav" not in page.html()
    page.part("a")
    assert {"#a", "#a-2"} <= {*check_page(page.html()).values("href")}


def test_nothing_is_added_for_nothing():
    page = Page("Empty")
    before = page.html()
    page.points([], "title").facts({}).verdicts([])
    assert page.html() == before


def test_figures_become_part_of_the_page():
    html = inline_svg(svg(), "one", "A mark")
    for part in ("metadata", "<style", "xlink", "xmlns", 'height="150pt"', "example"):
        assert part not in html
    assert 'id="one-mark"' in html
    assert 'href="#one-mark"' in html
    assert "url(#one-cut)" in html
    assert "fill: var(--ink); stroke: #0460bd" in html
    assert "a &lt; b" in html
    assert 'viewBox="0 0 300 150"' in html
    assert 'aria-label="A mark"' in html


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("<script>alert(1)</script>", "without script"),
        ("<foreignObject/>", "without foreignObject"),
        ("<image xlink:href='x.png'/>", "without image"),
        ("<g onload='alert(1)'/>", "without onload"),
        ("<use xlink:href='https://example.org/a.svg#b'/>", "must not refer to url"),
        ("<use href='javascript:alert(1)'/>", "must not refer to url"),
        ("<rect style='fill: url(https://example.org)'/>", "must not refer to fill"),
    ],
)
def test_svg_other_than_shapes_and_text_is_refused(more, message):
    with pytest.raises(ValueError, match=message):
        inline_svg(svg(more=more), "one", "")
    with pytest.raises(ValueError, match="not html"):
        inline_svg("<html/>", "one", "")


def test_colours_have_contrast_in_light_and_in_dark():
    for colours in (LIGHT, DARK):
        paper = luminance(colours["--paper"])
        assert contrast(luminance(colours["--ink"]), paper) > 12
        assert contrast(luminance(colours["--faint"]), paper) > 4.5
        assert contrast(luminance(colours["--grid"]), paper) > 1.2


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(a * b for a, b in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def contrast(first, second):
    low, high = sorted((first, second))
    return (high + 0.05) / (low + 0.05)


def test_write(tmp_path):
    page = make_page()
    assert page.write(tmp_path / "page.html").read_text(encoding="utf-8") == page.html()
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_in_a_browser(tmp_path):
    page = make_page()
    long = page.part("Long " + "words" * 40).text("a" * 500).code("b" * 500).facts({"c" * 300: "d" * 300})
    long.table([f"column {i}" for i in range(30)], [["e" * 80] + ["1.00 ± 0.01"] * 29], "f" * 200)
    check_widths(page.html(), tmp_path)


def test_nothing_runs_even_if_it_were_there(tmp_path):
    html = make_page().html().replace("<main>", "<script>document.title = 'ran'</script><main>")
    allowed = html.replace("default-src 'none'", "default-src 'unsafe-inline'")
    assert [title for _, _, title in in_browser(html, tmp_path, [800])] == ["plain"]
    assert [title for _, _, title in in_browser(allowed, tmp_path, [800])] == ["ran"]


def test_a_page_in_a_notebook():
    page = Page('<b>"Fish" & chips</b>', ["What sells."])
    framed = page._repr_html_()
    frame = re.fullmatch(r'<iframe sandbox="allow-scripts" srcdoc="([^"]*)" [^<>]*></iframe>', framed)
    assert html.unescape(frame[1]) == page.html()
    assert repr(page) == """<Page '<b>"Fish" & chips</b>': write(path) writes it to a file>"""
