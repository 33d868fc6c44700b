"""A verdict of check never changes when more is exported; where it would, there is none, and the gap is named."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.exported_estates import ADDRESSES, FULL, SCRIPT, Exported, Place, write_estates

if TYPE_CHECKING:
    from routing.analysis.check.checking import Check
    from routing.analysis.check.deciding import Fate

ESTATES = int(os.environ.get("SBROUTE_RANDOM_EXPORTS", "25"))
SEED = int(os.environ.get("SBROUTE_RANDOM_SEED", "20260301"))
END = (
    *("outcome", "reason", "matching_step", "route_name", "address", "mirror_address"),
    *("destination_database", "broker_instance", "rerouted_from"),
)
# What is no fault of the exports: the endpoint is gone, or sys.databases does not list the sender.
OF_THE_ESTATE = {"ENDPOINT_OF_DIALOG", "NOT_LISTED"}
Told = tuple[int, str, int]


def end_of(fate: Fate) -> tuple[object, ...] | None:
    return None if fate.verdict is None else tuple(getattr(fate.verdict, name) for name in END)


@pytest.fixture(scope="module")
def instances() -> dict[str, Exported]:
    return {}


@pytest.fixture(scope="module")
def done(instances: dict[str, Exported], tmp_path_factory: pytest.TempPathFactory) -> Check:
    from routing.analysis.check.checking import check

    folder = tmp_path_factory.mktemp("exports")
    written = write_estates(random.Random(SEED), folder, range(ESTATES), less=4, scripted=ESTATES)
    instances.update({each.name: each for each in written})
    return check([str(folder)])


def key_of(fate: Fate, instance: Exported) -> Told:
    return instance.estate, fate.handle, fate.row["message_sequence_number"]


def by_variant(
    done: Check, instances: dict[str, Exported]
) -> tuple[dict[Told, Fate], list[tuple[Exported, Fate]]]:
    """The fates of the whole estates, and those of estates in part."""
    whole, in_part = {}, []
    for fate in done.fates:
        instance = instances[fate.row["instance_name"]]
        if instance.variant == FULL:
            whole[key_of(fate, instance)] = fate
        else:
            in_part.append((instance, fate))
    return whole, in_part


def test_a_verdict_stays_when_more_is_exported(done: Check, instances: dict[str, Exported]) -> None:
    whole, in_part = by_variant(done, instances)
    told = [(instance, fate) for instance, fate in in_part if fate.verdict is not None]
    differing = [
        (instance.name, sorted(map(str, instance.left_out)), fate.row["message_id"], end_of(fate))
        for instance, fate in told
        if end_of(fate) != end_of(whole[key_of(fate, instance)])
    ]
    assert differing == []
    # It is no test where nothing is decided.
    for is_script in (True, False):
        of_kind = [fate.verdict for instance, fate in in_part if (instance.variant == SCRIPT) is is_script]
        assert sum(verdict is not None for verdict in of_kind) > len(of_kind) / 3


def test_whole_exports_leave_nothing_open(done: Check, instances: dict[str, Exported]) -> None:
    whole, _ = by_variant(done, instances)
    assert {gap.what.name for fate in whole.values() for gap in fate.gaps} == OF_THE_ESTATE
    assert sum(fate.verdict is not None for fate in whole.values()) > 0.8 * len(whole)


def was_left_out(instance: Exported, view: str, database: str | None) -> bool:
    places: set[Place] = {(view, database)}
    if view == "service_broker_endpoints":
        places.add(ADDRESSES)
    return bool(places & instance.left_out)


def test_what_would_be_needed_was_left_out(done: Check, instances: dict[str, Exported]) -> None:
    _, in_part = by_variant(done, instances)
    seen: Counter[str] = Counter()
    for instance, fate in in_part:
        assert (fate.verdict is None) == bool(fate.gaps)
        for gap in fate.gaps:
            seen[gap.what.name] += 1
            view = gap.what.view.removeprefix("sys.")
            is_of_estate = gap.what.name in OF_THE_ESTATE
            assert gap.instance == instance.name
            assert is_of_estate or was_left_out(instance, view, gap.database), (instance, gap)
    expected = {
        "ROUTES",
        "ALL_ROUTES",
        "SERVICES",
        "ENDPOINTS_OF_DIALOGS",
        "DATABASES",
        "ADDRESSES",
        *OF_THE_ESTATE,
    }
    assert set(seen) >= expected


def test_all_that_is_missing_is_listed(done: Check, instances: dict[str, Exported]) -> None:
    """What no verdict stands without is in the list of what is not known, once."""
    listed = done.gaps
    assert len(set(listed)) == len(listed)
    needed = {gap for fate in done.fates for gap in fate.gaps if gap.what.name not in OF_THE_ESTATE}
    # An endpoint of which nothing is known is one line of the list, not two.
    whole = {(gap.instance, gap.database, gap.what.view) for gap in listed}
    assert {(gap.instance, gap.database, gap.what.view) for gap in needed} <= whole


def test_every_row_of_the_queues_has_a_fate(done: Check) -> None:
    read, rejected = done.evidence.rows_read, done.evidence.rows_rejected
    assert len(done.fates) == read["transmission_queue"] - rejected["transmission_queue"]
    assert rejected["transmission_queue"] > 0
