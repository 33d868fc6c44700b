"""The marks of the estate's picture: boxes, curves, names, and what ends where, each for the rows of its data."""

from __future__ import annotations

from typing import Any

from routing.features.report.pictures import theme
from routing.features.report.pictures.layout import BOX, LEGEND
from routing.terms import NOT_KNOWN

Mark = dict[str, Any]
_SIZE = 12
_COLOUR = {"scale": "colour", "field": "outcome"}
_GLYPH = {"scale": "glyph", "field": "outcome"}
# A tick, two bars, a cross, a question mark: outcomes are told apart without colours too.
_GLYPHS = {
    "DELIVERED": "M-.95,.05l.35,-.35l.4,.4l.8,-.9l.37,.33l-1.15,1.3z",
    "DELAYED": "M-.7,-.9h.5v1.8h-.5zM.2,-.9h.5v1.8h-.5z",
    "DROPPED": "M-.9,-.55l.35,-.35l.55,.55l.55,-.55l.35,.35l-.55,.55l.55,.55l-.35,.35l-.55,-.55l-.55,.55l-.35,-.35"
    "l.55,-.55z",
    NOT_KNOWN: "M-.15,.55h.4v.4h-.4zM-.6,-.4a.62,.6 0 1 1 .85,.55v.2h-.4v-.5a.25,.25 0 1 0 -.1,-.45z",
}
_LINE = "M-1.4,-.3h2.8v.6h-2.8z"


def drawn(palette: theme.PicturePalette) -> list[Mark]:
    """List all marks, lower ones first: curves between boxes run behind the boxes on their way."""
    return [
        *_curves("estate_across"),
        _boxes(palette),
        *_curves("estate_inside"),
        *_numbers(palette),
        _names(palette),
        *_ends("estate_delivered", shade=0),
        *_ends("estate_stopped", shade=0.2),
        *_legend(),
    ]


def scales(palette: theme.PicturePalette) -> list[Mark]:
    """Return the colour and the glyph of each outcome."""
    glyphs = [_GLYPHS.get(outcome, _LINE) for outcome in palette.outcomes]
    outcome_scale = {"type": "ordinal", "domain": list(palette.outcomes)}
    return [
        {"name": "colour", **outcome_scale, "range": list(palette.outcomes.values())},
        {"name": "glyph", **outcome_scale, "range": glyphs},
    ]


def _vega_mark(data: str, kind: str, name: str, **channels: Any) -> Mark:
    """Return a mark for each row of a data set; plain values are the same for all rows.

    A screen reader is given the description of the picture and its table instead.
    """
    update = {key: value if isinstance(value, dict) else {"value": value} for key, value in channels.items()}
    return {"type": kind, "name": name, "aria": False, "from": {"data": data}, "encode": {"update": update}}


def _field(name: str, offset: float = 0) -> Mark:
    # To a text, an offset of 0 is a letter more.
    return {"field": name, "offset": offset} if offset else {"field": name}


def _boxes(palette: theme.PicturePalette) -> Mark:
    return _vega_mark(
        "estate_boxes",
        "rect",
        "estate_box",
        x=_field("x"),
        y=_field("y"),
        width=BOX,
        height=_field("height"),
        cornerRadius=7,
        fill=palette.paper,
        stroke=palette.line,
        strokeWidth=1.5,
        strokeDash={"signal": "datum.kind === 'INSTANCE' ? [] : [4, 3]"},
    )


def _curves(data: str) -> list[Mark]:
    """Draw curves, each with a tip that says where it goes."""
    tooltip = _field("told")
    curve = _vega_mark(
        data,
        "path",
        f"{data}_curve",
        path=_field("path"),
        stroke=_COLOUR,
        strokeWidth=_field("thick"),
        strokeOpacity=0.55,
        tooltip=tooltip,
    )
    curve["encode"]["hover"] = {"strokeOpacity": {"value": 1}}
    tip = {"x": _field("tip_x"), "y": _field("tip_y"), "angle": _field("tip_angle"), "shape": "triangle"}
    size = {"signal": "40 + 14 * datum.thick"}
    return [curve, _vega_mark(data, "symbol", f"{data}_tip", **tip, size=size, fill=_COLOUR, tooltip=tooltip)]


def _numbers(palette: theme.PicturePalette) -> list[Mark]:
    """Return the numbers on the curves; around each, what lies beneath is covered."""
    place = {"x": _field("number_x"), "y": _field("number_y"), "align": "center", "tooltip": _field("told")}
    number = {**place, **_words("number"), "text": {"signal": "isValid(datum.number_x) ? datum.number : ''"}}
    halo = {"stroke": palette.paper, "strokeWidth": 4, "strokeJoin": "round"}
    return [
        _vega_mark("estate_across", "text", "estate_halo", **number, **halo),
        _vega_mark("estate_across", "text", "estate_number", **number),
    ]


def _words(field: str) -> Mark:
    return {"text": _field(field), "baseline": "middle", "fontSize": _SIZE}


def _names(palette: theme.PicturePalette) -> Mark:
    is_faint = "datum.is_idle || datum.kind === 'ADDRESS'"
    return _vega_mark(
        "estate_names",
        "text",
        "estate_name",
        x=_field("name_x"),
        y=_field("middle"),
        **_words("name"),
        limit=_field("name_width"),
        ellipsis="…",
        fontWeight={"signal": "datum.kind === 'INSTANCE' ? 600 : 400"},
        fill={"signal": f"{is_faint} ? '{palette.soft}' : '{palette.ink}'"},
        tooltip=_field("told"),
    )


def _ends(data: str, shade: float) -> list[Mark]:
    """Draw messages that ended at a node beside its name: glyph and number, shaded where somebody should look."""
    there = {"y": _field("y"), "tooltip": _field("told")}
    pill = {"x": _field("x"), "width": _field("width"), "yc": _field("y"), "height": 17, "cornerRadius": 8.5}
    glyph = {"x": _field("x", 11), "shape": _GLYPH, "size": 80, "fill": _COLOUR}
    return [
        _vega_mark(data, "rect", f"{data}_pill", **pill, fill=_COLOUR, fillOpacity=shade, tooltip=_field("told")),
        _vega_mark(data, "symbol", f"{data}_glyph", **glyph, **there),
        _vega_mark(data, "text", f"{data}_number", **_words("number"), x=_field("x", 19), **there),
    ]


def _legend() -> list[Mark]:
    glyph = {"shape": _GLYPH, "size": 100, "fill": _COLOUR}
    return [
        _vega_mark("estate_legend", "symbol", "estate_legend_glyph", **glyph, x=_field("x"), y=LEGEND / 2),
        _vega_mark(
            "estate_legend", "text", "estate_legend_words", **_words("words"), x=_field("x", 13), y=LEGEND / 2
        ),
    ]
