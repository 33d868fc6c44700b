"""The Databricks bundle against the schema of this machine's Databricks CLI: `make test-bundle`.

The CLI prints the schema without a workspace or sign-in. Without the CLI the tests fail.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.project.bundle_checks import bundle_files
from tests.project.bundle_schema import bundle_schema, schema_faults
from tests.project.platform_checks import changed
from tests.project.test_platforms import FIELD_CHANGES

# What the published schema leaves to the CLI itself: keys at the top, and words that it only describes.
_LEFT = {"an unknown top-level key", "an unknown kind of artifact", "an unknown mode", "an unknown right"}


@pytest.fixture(scope="module")
def published() -> Any:
    ended = subprocess.run(
        ["databricks", "bundle", "schema"], capture_output=True, text=True, timeout=120, check=True
    )
    return json.loads(ended.stdout)


def test_every_file_is_as_published(published: Any) -> None:
    assert [fault for file in bundle_files().values() for fault in schema_faults(published, file)] == []


@pytest.mark.parametrize("what", sorted(set(FIELD_CHANGES) - _LEFT))
def test_a_changed_bundle_breaks_the_schema(published: Any, what: str) -> None:
    files = changed(bundle_files(), FIELD_CHANGES[what][0])
    assert [fault for file in files.values() for fault in schema_faults(published, file)] != []


@pytest.mark.parametrize("kind", ["Artifact", "Bundle", "Target", "Variable"])
def test_the_frame_that_is_kept_here_has_the_published_fields(published: Any, kind: str) -> None:
    parts = published["$defs"]["github.com"]["databricks"]["cli"]["bundle"]
    part = parts["config"]["variable.Variable"] if kind == "Variable" else parts[f"config.{kind}"]
    # A value, or a reference to one.
    fields = part.get("oneOf", [part])[0]["properties"]
    assert set(bundle_schema()["$defs"][kind]["properties"]) == set(fields)


def test_the_top_that_is_kept_here_has_the_published_fields(published: Any) -> None:
    assert set(bundle_schema()["$defs"]["Root"]["properties"]) == set(published["properties"])
