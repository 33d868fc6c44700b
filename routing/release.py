"""The installed release of this package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def release() -> str:
    """The release, such as ``0.1.0``; ``unknown`` where the package runs uninstalled (from a zip, say)."""
    try:
        return version("service-broker-routing")
    except PackageNotFoundError:
        return "unknown"
