"""The look of the pictures: one hue an outcome, quiet axes, the same words on the page and in notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import altair as alt
import vl_convert

from routing.terms import NOT_KNOWN, JsonObject, Outcome, ReadRow

# What is wrong stands next to the axis, where it can be compared.
OUTCOMES = (*map(str, (Outcome.DROPPED, Outcome.DELAYED)), NOT_KNOWN)
OUTCOMES += tuple(map(str, (Outcome.FORWARDED, Outcome.SENT, Outcome.DELIVERED)))
FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"
WIDTH = 680
"""In pixels, where nothing says how wide a picture's place is: on the page it is as wide as what holds it."""

Picture: TypeAlias = "alt.Chart | alt.LayerChart | alt.FacetChart"


@dataclass(frozen=True)
class PicturePalette:
    """The colours of a picture: words and marks, fainter words, lines, what lies beneath, and one an outcome."""

    ink: str
    soft: str
    line: str
    paper: str
    outcomes: Mapping[str, str]


_LIGHT = ("#a8233a", "#d47a10", "#7d8590", "#6b5aa8", "#2f6db3", "#3f9b6c")
_DARK = ("#e8637a", "#eba04a", "#949ca8", "#a395e4", "#5f9fe6", "#4fb681")
LIGHT = PicturePalette("#1c2430", "#56606e", "#d9dee5", "#ffffff", dict(zip(OUTCOMES, _LIGHT, strict=True)))
DARK = PicturePalette("#e8ebf0", "#a7b0bd", "#353d49", "#14181f", dict(zip(OUTCOMES, _DARK, strict=True)))


def variables(palette: PicturePalette) -> dict[str, str]:
    """Return the colours by their names in style sheets: ``--ink``, ``--outcome-delayed`` and so on."""
    named = {"--ink": palette.ink, "--soft": palette.soft, "--line": palette.line, "--paper": palette.paper}
    return named | {f"--outcome-{_kebab(name)}": colour for name, colour in palette.outcomes.items()}


def css() -> str:
    """Return a style sheet's declarations of all colours, in light and, where the reader prefers it, in dark."""
    light, dark = (
        "".join(f"{name}:{value};" for name, value in variables(palette).items()) for palette in (LIGHT, DARK)
    )
    return f":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"


def by_style_sheet() -> PicturePalette:
    """Return the palette that takes its colours from the page's style sheet, or else the light ones."""
    ink, soft, line, paper, *outcomes = (f"var({name}, {value})" for name, value in variables(LIGHT).items())
    return PicturePalette(ink, soft, line, paper, dict(zip(OUTCOMES, outcomes, strict=True)))


def config(palette: PicturePalette) -> JsonObject:
    """Return Vega-Lite's config: it holds all colours and fonts, so that a picture can be dressed anew."""
    words = {"labelColor": palette.soft, "titleColor": palette.soft, "labelFontSize": 12, "titleFontSize": 12}
    lines = {"gridColor": palette.line, "domainColor": palette.line, "tickColor": palette.line}
    quiet = {"titleFontWeight": "normal", "aria": False, **words}
    return {
        "background": palette.paper,
        "font": FONT,
        "padding": 4,
        "view": {"stroke": None},
        # Screen readers are given the description, and the numbers by the table beside the picture.
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


def outcome_colour(shown: Sequence[str] = (), offset: int = 14) -> alt.Color:
    """Return the colour of field ``outcome``, the same for a word everywhere, and a legend of the words shown."""
    plain = "replace(lower(datum.label), '_', ' ')"
    many = alt.ExprRef("clamp(floor(width / 95), 2, 6)")
    top = alt.Legend(
        title=None, orient="top", columns=many, offset=offset, labelExpr=plain, values=_ordered(shown)
    )
    legend = top if shown else None
    return alt.Color("outcome:N", scale=alt.Scale(domain=list(OUTCOMES), range="category"), legend=legend)


def outcome_order(chart: alt.Chart) -> alt.Chart:
    """Return the chart with field ``order``: which outcome stands next to the axis."""
    return chart.transform_calculate(order=f"indexof({list(OUTCOMES)}, datum.outcome)")


def named(rows: Sequence[ReadRow]) -> alt.InlineData:
    """Return the rows as the data set that the page replaces by ``view.data("rows", others)``."""
    return alt.InlineData(values=[dict(row) for row in rows], name="rows")


def above(words: str) -> JsonObject:
    """Return the properties of a vertical axis that says above itself what it counts, where it takes no width."""
    return {
        "title": words,
        "titleAngle": 0,
        "titleAlign": "left",
        "titleX": 0,
        "titleY": -8,
        "titleBaseline": "bottom",
    }


def dressed(picture: Picture, description: str) -> Picture:
    """Return the picture in the colours of a light page, with what a screen reader says of it."""
    return picture.properties(description=description, config=config(LIGHT), width=WIDTH)


def _ordered(shown: Sequence[str]) -> list[str]:
    """Return the best first, as the eye expects it of a legend; words that are no outcome have no colour."""
    return [name for name in reversed(OUTCOMES) if name in shown]


def _kebab(word: str) -> str:
    return word.lower().replace("_", "-")


# What the page needs to draw pictures: each compiled to Vega, and Vega's own runtime, which asks no network.
#
# Vega's expressions are read by its interpreter, so that the page's policy may forbid what turns text into
# code.


_DRAW = """
const words = value => Object.entries(value || {}).map(([name, said]) => `${name}: ${said}`).join("\\n");
window.draw = (element, spec) => vegaEmbed(element, spec, {
  mode: "vega", ast: true, actions: false, defaultStyle: false, renderer: "svg", logLevel: 1,
  tooltip: (handler, event, item, value) => element.setAttribute("title", words(value))
}).then(embedded => embedded.view);
"""


def to_vega(picture: Picture) -> JsonObject:
    """Convert the picture to Vega: as wide as its container, in the colours of the page's style sheet.

    Its rows are the data set ``rows``.
    """
    # The pictures' tests look whether they are right, which takes longer than all else.
    spec = picture.to_dict(validate=False)
    spec |= {"width": "container", "config": config(by_style_sheet()) | {"background": None}}
    compiled: JsonObject = vl_convert.vegalite_to_vega(spec)
    return compiled


@cache
def javascript() -> str:
    """Return the script of ``draw(element, spec)``, which draws Vega as SVG and promises its view.

    The script has no `</script`; it makes no request and needs no `unsafe-eval`.
    """
    # The bundle is a module of many short names: none of them shall be the page's.
    return f"(()=>{{{vl_convert.javascript_bundle(_DRAW)}}})();"


# Pictures in notebooks, without a network.


# What a picture has of its own: a notebook shows one of more as small, for screens that have more pixels.
_PPI = 72


def for_notebook() -> None:
    """Make notebooks hold Altair's pictures as PNG, drawn here: in Jupyter, on Databricks, exported.

    Altair's own way loads its runtime from the network whenever a notebook is looked at.
    """
    alt.renderers.enable("png", ppi=2 * _PPI)
