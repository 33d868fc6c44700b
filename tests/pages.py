"""Where the pages of the documentation are."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
