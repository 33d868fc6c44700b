"""What the page needs to draw pictures: each compiled to Vega, and Vega's own runtime, which asks no network.

Vega-Lite compiles here and is not shipped. Vega's expressions are read by its interpreter, so that the page's
policy may forbid what turns text into code.
"""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any

import vl_convert

from routing.analysis.report.pictures import theme

# vl_convert has these modules, under names that it does not publish: asked for one that it lacks, it panics.
_MODULES = {"1.9.0.post1": ("/npm/vega@6.2.0/+esm", "/npm/vega-interpreter@2.0.0/+esm")}
_ALONE = """
import {{parse, View}} from "{vega}";
import {{expressionInterpreter as expr}} from "{interpreter}";
window.draw = (element, spec) => new View(parse(spec, null, {{ast: true}}), {{
  expr, renderer: "svg", container: element, hover: true
}}).runAsync();
"""
# What is published has the compiler in it too, and half as much again in bytes.
_EMBEDDED = """
const words = value => Object.entries(value || {}).map(([name, said]) => `${name}: ${said}`).join("\\n");
window.draw = (element, spec) => vegaEmbed(element, spec, {
  mode: "vega", ast: true, actions: false, defaultStyle: false, renderer: "svg", logLevel: 1,
  tooltip: (handler, event, item, value) => element.setAttribute("title", words(value))
}).then(embedded => embedded.view);
"""


def to_vega(picture: theme.Picture) -> dict[str, Any]:
    """The picture as a Vega specification: as wide as its container, in the colours of the page's style sheet.

    Its rows are the data set ``rows``.
    """
    # The pictures' tests look whether they are right, which takes longer than all else.
    spec = picture.to_dict(validate=False)
    spec |= {"width": "container", "config": theme.config(theme.by_style_sheet()) | {"background": None}}
    compiled: dict[str, Any] = vl_convert.vegalite_to_vega(spec)
    return compiled


@cache
def javascript() -> str:
    """A script that defines ``draw(element, spec)``: draws a Vega specification as SVG and promises its view.

    The script has no `</script`; it makes no request and needs no `unsafe-eval`.
    """
    modules = _MODULES.get(metadata.version("vl-convert-python"))
    snippet = _EMBEDDED if modules is None else _ALONE.format(vega=modules[0], interpreter=modules[1])
    # The bundle is a module of many short names: none of them shall be the page's.
    return f"(()=>{{{vl_convert.javascript_bundle(snippet)}}})();"
