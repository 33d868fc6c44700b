"""Pictures in notebooks, without a network."""

from __future__ import annotations

import altair as alt

# What a picture has of its own: a notebook shows one of more as small, for screens that have more pixels.
_PPI = 72


def for_notebook() -> None:
    """Make notebooks hold Altair's pictures as PNG, drawn here: in Jupyter, on Databricks, exported.

    Altair's own way loads its runtime from the network whenever a notebook is looked at.
    """
    alt.renderers.enable("png", ppi=2 * _PPI)
