"""The look of the pictures: one hue an outcome, quiet axes, the same words on the page and in notebooks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import altair as alt
import vl_convert

from routing.render.phrases import cut
from routing.terms import NOT_KNOWN, JsonObject, Outcome, ReadRow
from routing.views.page.facts import CONNECTION_FAILS, LOOP, NO_RETURN_PATH

# Bad outcomes are next to the axis, where they can be compared.
OUTCOMES = (
    *(str(Outcome.DROPPED), LOOP, str(Outcome.DELAYED), NO_RETURN_PATH, CONNECTION_FAILS, NOT_KNOWN),
    *map(str, (Outcome.FORWARDED, Outcome.SENT, Outcome.DELIVERED)),
)
FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"
WIDTH = 680
"""The width in pixels if the place for a picture has none, as in a notebook."""

_LONGEST = 256

Picture: TypeAlias = "alt.Chart | alt.LayerChart | alt.FacetChart"


@dataclass(frozen=True)
class PicturePalette:
    """The colours of a picture: words, marks, fainter words, lines, background, and one for each outcome."""

    ink: str
    soft: str
    line: str
    paper: str
    outcomes: Mapping[str, str]


_LIGHT = ("#a8233a", "#b8508f", "#d47a10", "#93801a", "#8a4b20", "#7d8590", "#6b5aa8", "#2f6db3", "#3f9b6c")
_DARK = ("#e8637a", "#e08fc4", "#eba04a", "#cdb84e", "#c98d63", "#949ca8", "#a395e4", "#5f9fe6", "#4fb681")
LIGHT = PicturePalette("#1c2430", "#56606e", "#d9dee5", "#ffffff", dict(zip(OUTCOMES, _LIGHT, strict=True)))
DARK = PicturePalette("#e8ebf0", "#a7b0bd", "#353d49", "#14181f", dict(zip(OUTCOMES, _DARK, strict=True)))


def variables(palette: PicturePalette) -> dict[str, str]:
    """Return the colours by their names in style sheets: ``--ink``, ``--outcome-delayed`` and so on."""
    named = {"--ink": palette.ink, "--soft": palette.soft, "--line": palette.line, "--paper": palette.paper}
    return named | {
        f"--outcome-{name.lower().replace('_', '-')}": colour for name, colour in palette.outcomes.items()
    }


def css() -> str:
    """Return style sheet declarations of all colours, for light and for dark pages."""
    light, dark = (
        "".join(f"{name}:{value};" for name, value in variables(palette).items()) for palette in (LIGHT, DARK)
    )
    return f":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"


def by_style_sheet() -> PicturePalette:
    """Return the palette that takes its colours from the page's style sheet, or else the light ones."""
    ink, soft, line, paper, *outcomes = (f"var({name}, {value})" for name, value in variables(LIGHT).items())
    return PicturePalette(ink, soft, line, paper, dict(zip(OUTCOMES, outcomes, strict=True)))


def config(palette: PicturePalette) -> JsonObject:
    """Return Vega-Lite's config with all colours and fonts, so that a picture can be drawn with another one."""
    words = {"labelColor": palette.soft, "titleColor": palette.soft, "labelFontSize": 12, "titleFontSize": 12}
    lines = {"gridColor": palette.line, "domainColor": palette.line, "tickColor": palette.line}
    quiet = {"titleFontWeight": "normal", "aria": False, **words}
    return {
        "background": palette.paper,
        "font": FONT,
        "padding": 4,
        "view": {"stroke": None},
        # Screen readers read the description, and the numbers from the table beside the picture.
        "mark": {"aria": False, "color": palette.soft},
        "axis": {**quiet, **lines, "domain": False, "ticks": False, "labelPadding": 6},
        "legend": {**quiet, "symbolType": "square", "symbolSize": 110, "columnPadding": 14},
        "range": {"category": [palette.outcomes[name] for name in OUTCOMES]},
        "style": {
            "name": {"color": palette.ink, "fontSize": 13, "align": "left", "baseline": "middle"},
            "number": {"color": palette.soft, "fontSize": 12, "align": "left", "baseline": "middle"},
            "fair": {"color": palette.soft, "opacity": 0.3},
            "expected": {"color": palette.ink, "thickness": 2},
            "base": {"color": palette.line},
            "trouble": {"color": palette.outcomes[str(Outcome.DELAYED)]},
            "plain": {"color": palette.outcomes[str(Outcome.SENT)]},
        },
    }


def outcome_colour(
    shown: Sequence[str] = (), offset: int = 14, orient: Literal["top", "bottom"] = "top"
) -> alt.Color:
    """Return the colour of field ``outcome``, the same for a word everywhere, and a legend of the words shown."""
    plain = "replace(lower(datum.label), /_/g, ' ')"
    column_count = alt.ExprRef("clamp(floor(width / 130), 2, 7)")
    words = alt.Legend(
        title=None, orient=orient, columns=column_count, offset=offset, labelExpr=plain, values=_ordered(shown)
    )
    legend = words if shown else None
    return alt.Color("outcome:N", scale=alt.Scale(domain=list(OUTCOMES), range="category"), legend=legend)


def outcome_order(chart: alt.Chart) -> alt.Chart:
    """Return the chart with field ``order``, the position of an outcome from the axis."""
    return chart.transform_calculate(order=f"indexof({list(OUTCOMES)}, datum.outcome)")


def drawn_text(text: str) -> str:
    """Return a text of the data in a form that pictures can draw: printable and short.

    Characters that UTF-16 writes as two are replaced, because Vega cuts texts between the halves and then fails.
    """
    return "".join(sign if sign < "\U00010000" else "\ufffd" for sign in cut(text, _LONGEST))


def named(rows: Sequence[ReadRow]) -> alt.InlineData:
    """Return the rows as the data set ``rows``."""
    return alt.InlineData(values=[dict(row) for row in rows], name="rows")


def above(words: str) -> JsonObject:
    """Return the properties of a vertical axis with its title above, where it takes no width."""
    return {
        "title": words,
        "titleAngle": 0,
        "titleAlign": "left",
        "titleX": 0,
        "titleY": -8,
        "titleBaseline": "bottom",
    }


def dressed(picture: Picture, description: str) -> Picture:
    """Return the picture in the colours of a light page, with a description for screen readers."""
    return picture.properties(description=description, config=config(LIGHT), width=WIDTH)


def _ordered(shown: Sequence[str]) -> list[str]:
    """Return the outcomes of a legend, best first. Words that are not outcomes have no colour."""
    return [name for name in reversed(OUTCOMES) if name in shown]


# Pictures on the page: drawn here, in the colours of its style sheet.


WIDE, NARROW = 900, 336
"""The widths of a picture in pixels: for windows, and for phones."""
_QUIET = re.compile(
    r' (?:aria-hidden="true"|opacity="1"|role="graphics-object"|aria-roledescription="[^"]*"|class="[^"]*")'
)
_LONG = re.compile(r"(\.\d\d)\d+")
_LINK = re.compile(r'href="[^"#]*#')
_EMPTY = re.compile(r"<g[^<>]*></g>|<g></g>")
_FONT = f' font-family="{FONT}"'


def to_svg(picture: Picture, width: int | None) -> str:
    """Draw a picture as SVG for the page, which scales it down in narrow windows.

    Args:
        picture: the picture.
        width: its width in pixels, or None for its default.
    """
    # Validation takes longer than everything else, and the tests of the pictures do it.
    spec = picture.to_dict(validate=False)
    spec |= {"config": config(by_style_sheet()) | {"background": None}}
    spec |= {} if width is None else {"width": width}
    svg: str = vl_convert.vegalite_to_svg(spec)
    svg = svg.replace('xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" ', "")
    for verbose, short in ((_FONT, ""), ("xlink:href=", "href="), ('"graphics-symbol"', '"img"')):
        svg = svg.replace(verbose, short)
    # Links lead to a place on the page, not to a server of Vega.
    svg = _LINK.sub('href="#', _LONG.sub(r"\1", _QUIET.sub("", svg)))
    while _EMPTY.search(svg):
        svg = _EMPTY.sub("", svg)
    return svg


# The default of pictures. A notebook shows higher resolutions smaller, for screens with more pixels.
_PPI = 72


def for_notebook() -> None:
    """Make notebooks embed Altair's pictures as PNG, in Jupyter, on Databricks and in exports.

    By default Altair loads its runtime from the network each time somebody opens the notebook.
    """
    alt.renderers.enable("png", ppi=2 * _PPI)
