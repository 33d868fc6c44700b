"""The estate as a picture for notebooks: what Vega draws, as an image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import vl_convert

from routing.features.report.facts import Report
from routing.features.report.pictures.estate_picture import estate
from routing.features.report.report_network import network_of

# For screens that have twice the pixels.
_SCALE = 2


@dataclass(frozen=True)
class DrawnPicture:
    """A specification of Vega that a notebook shows as PNG, drawn here without a network."""

    spec: Mapping[str, Any]

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        """Return the image for IPython, and the size at which to show it."""
        drawn = vl_convert.vega_to_png(dict(self.spec), scale=_SCALE)
        return drawn, {name: self.spec[name] for name in ("width", "height")}


def estate_of(report: Report) -> DrawnPicture:
    """Draw instances and databases as nodes, messages between them by outcome, and where messages stop."""
    return DrawnPicture(estate(network_of(report.flows, report.places)))
