"""What the page needs to draw pictures: each compiled to Vega, and Vega's own runtime, which asks no network.

Vega's expressions are read by its interpreter, so that the page's policy may forbid what turns text into code.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import vl_convert

from routing.features.report.pictures import theme

_DRAW = """
const words = value => Object.entries(value || {}).map(([name, said]) => `${name}: ${said}`).join("\\n");
window.draw = (element, spec) => vegaEmbed(element, spec, {
  mode: "vega", ast: true, actions: false, defaultStyle: false, renderer: "svg", logLevel: 1,
  tooltip: (handler, event, item, value) => element.setAttribute("title", words(value))
}).then(embedded => embedded.view);
"""


def to_vega(picture: theme.Picture) -> dict[str, Any]:
    """Convert the picture to Vega: as wide as its container, in the colours of the page's style sheet.

    Its rows are the data set ``rows``.
    """
    # The pictures' tests look whether they are right, which takes longer than all else.
    spec = picture.to_dict(validate=False)
    spec |= {"width": "container", "config": theme.config(theme.by_style_sheet()) | {"background": None}}
    compiled: dict[str, Any] = vl_convert.vegalite_to_vega(spec)
    return compiled


@cache
def javascript() -> str:
    """Return the script of ``draw(element, spec)``, which draws Vega as SVG and promises its view.

    The script has no `</script`; it makes no request and needs no `unsafe-eval`.
    """
    # The bundle is a module of many short names: none of them shall be the page's.
    return f"(()=>{{{vl_convert.javascript_bundle(_DRAW)}}})();"
