"""Pictures in notebooks, without a network."""

from __future__ import annotations

import altair as alt


def for_notebook() -> None:
    """From now on a notebook holds Altair's pictures as PNG, drawn here: in Jupyter, on Databricks, exported.

    Altair's own way loads its runtime from the network whenever a notebook is looked at. Twice the pixels, for
    screens that have them.
    """
    alt.renderers.enable("png", scale_factor=2)
