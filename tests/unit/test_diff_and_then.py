"""`sbroute diff` over tables and `sbroute check --then` over exports agree about one script and one network."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from routing import cli
from tests.estate_rows import database, instance, message, route, service
from tests.exported_networks import AT, exported_network, write_network
from tests.reference.networks import Row, Tables
from tests.stored import save_job

NETWORKS, MESSAGES, SEED = 14, 40, 20261128
CHANGES = ("DROP ROUTE [{name}];", "ALTER ROUTE [{name}] WITH ADDRESS = '{address}';")
Ends = Counter[tuple[str, str]]


def test_diff_and_check_find_the_same_changed_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(SEED)
    seen: Ends = Counter()
    for number in range(NETWORKS):
        tables = exported_network(rng, MESSAGES)
        if not tables["messages"] or not tables["routes"]:
            continue
        folder = tmp_path / str(number)
        exports = folder / "exports"
        exports.mkdir(parents=True)
        write_network(exports, tables)
        script = folder / "change.sql"
        script.write_text(_change(rng, tables), encoding="utf-8")
        job = save_job(tables, folder)

        before, after = _ends(capsys, exports), _ends(capsys, exports, "--then", str(script))
        by_check = Counter((before[key], after[key]) for key in before if before[key] != after[key])
        at = AT.strftime("%Y-%m-%dT%H:%M:%SZ")
        answer = _json_of(
            capsys, "diff", "--config", str(job), "--at", at, "--with-script", str(script), "--quiet"
        )
        by_diff: Ends = Counter()
        for row in answer["counts"]:
            if row["ending_before"] != row["ending_after"]:
                by_diff[row["ending_before"], row["ending_after"]] += row["messages"]
        assert by_diff == by_check, script.read_text(encoding="utf-8")
        seen += by_check
    # It is no test where nothing changes.
    assert len(seen) > 5, seen


def _change(rng: random.Random, tables: Tables) -> str:
    route = rng.choice(tables["routes"])
    addresses = [address.strip() for row in tables["instances"] for address in row["addresses"]]
    address = rng.choice(["TCP://nowhere.example:4022", "LOCAL", *addresses])
    statement = rng.choice(CHANGES).format(name=route["name"], address=address)
    return f":CONNECT {route['instance_name']}\nUSE [{route['database_name']}];\n{statement}\nGO\n"


def _ends(capsys: pytest.CaptureFixture[str], exports: Path, *then: str) -> dict[tuple[str, str], str]:
    """Where each message ends, by instance and id."""
    return {
        (group["instance_name"], message["message_id"]): group["end"]
        for group in _json_of(capsys, "check", str(exports), *then)["groups"]
        for message in group["messages"]
    }


def _json_of(capsys: pytest.CaptureFixture[str], *line: str) -> Row:
    cli.main([*line, "--format", "json"])
    told: Row = json.loads(capsys.readouterr().out)
    return told


# What a script does to the instance without an address, whether other instances lead there, and what hides.
HIDING = [
    pytest.param("DROP SERVICE [//stock];", "TCP://b:4022", ["b"], id="a message may be dropped there"),
    pytest.param("DROP ROUTE [Back];", "TCP://b:4022", ["b"], id="an acknowledgement may be lost there"),
    pytest.param("DROP SERVICE [//other];", "TCP://b:4022", [], id="no message is for what differs"),
    pytest.param("DROP ROUTE [Nothing];", "TCP://b:4022", [], id="nothing differs"),
    pytest.param("DROP SERVICE [//stock];", "TCP://a:4022", [], id="every address is known"),
]


@pytest.mark.parametrize(("statement", "address", "hiding"), HIDING)
def test_changes_behind_an_instance_without_an_address_are_not_known(
    statement: str, address: str, hiding: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check assumes its address, and so knows more than a comparison of tables."""
    tables = {
        "instances": [
            instance("a", "tcp://a:4022", is_message_forwarding_enabled=False),
            instance("b", is_message_forwarding_enabled=False),
        ],
        "databases": [
            database("Sales", "1" * 8, instance_name="a"),
            database("Stock", "2" * 8, instance_name="b"),
        ],
        "services": [
            *(service("Stock", name, instance_name="b") for name in ("//stock", "//other")),
            service("Sales", "//from", instance_name="a"),
        ],
        "routes": [
            route("ToB", "//stock", address, instance_name="a", database_name="Sales"),
            route("Back", "//from", "TCP://a:4022", instance_name="b", database_name="Stock"),
        ],
        "messages": [message(1, "//stock", instance_name="a", from_service_name="//from")],
    }
    job, script = save_job(tables, tmp_path), tmp_path / "change.sql"
    script.write_text(f":CONNECT b\nUSE [Stock];\n{statement}\nGO\n", encoding="utf-8")
    line = ["diff", "--config", str(job), "--with-script", str(script), "--quiet"]
    answer = _json_of(capsys, *line)
    assert (answer["changed"], answer["unaddressed"]) == (0, hiding)
    assert cli.main([*line, "--fail-on", "delayed,dropped"]) == 0
    assert ("is known to change" in capsys.readouterr().out) == bool(hiding)
    assert cli.main([*line, "--fail-on", "not-known"]) == bool(hiding)
