"""`sbroute diff` over tables and `sbroute check --then` over exports agree about one script and one network."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from routing import cli
from tests.exported_networks import AT, exported_network, write_network
from tests.reference.networks import Row, Tables
from tests.stored import config_text, save_estate

NETWORKS, MESSAGES, SEED = 24, 40, 20261128
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
        job = folder / "job.yaml"
        job.write_text(config_text(save_estate(tables, folder / "in"), folder / "out"), encoding="utf-8")

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


def test_an_instance_without_an_address_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Check assumes its address, and so knows more than a comparison of tables."""
    tables = exported_network(random.Random(SEED), MESSAGES)
    hidden = tables["databases"][0]["instance_name"]
    for row in tables["instances"]:
        row["addresses"] = None if row["instance_name"] == hidden else row["addresses"]
    job, script = tmp_path / "job.yaml", tmp_path / "change.sql"
    job.write_text(config_text(save_estate(tables, tmp_path / "in"), tmp_path / "out"), encoding="utf-8")
    script.write_text(f":CONNECT {hidden}\nUSE [msdb];\nCREATE ROUTE [New] WITH ADDRESS = 'LOCAL';\nGO\n")
    line = ["diff", "--config", str(job), "--with-script", str(script), "--quiet"]
    assert _json_of(capsys, *line)["unaddressed"] == [hidden]
    cli.main(line)
    assert f"No message is followed to '{hidden}'" in capsys.readouterr().out
