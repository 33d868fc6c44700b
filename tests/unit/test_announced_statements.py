"""A sentence that announces a statement is followed by one: on random estates and networks, in every form."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from routing.advice.reasons import advice
from routing.advice.remedy import MessageRemedy, in_words
from routing.advice.status_meanings import WORDS
from routing.commands.checked_message import explain_messages
from routing.lint.catalogue import FINDINGS
from routing.terms import Reason
from routing.views.check.check_json import as_object
from routing.views.check.check_report import EVERYTHING, as_report, list_statements, make_document
from routing.views.check.checking import Check, check
from tests.check_texts import ANNOUNCES, announcing
from tests.exported import database, endpoint, export, route, waiting, whole_shop
from tests.exported_estates import write_estates
from tests.exported_networks import exported_network, write_network

SEED = 20260511
NETWORKS, EXPLAINED = 10, 3


def unannounced(done: Check) -> list[str]:
    """The texts of a check that announce a statement without one: as text, page and JSON."""
    documents = [make_document(done, with_all=True), make_document(done, limits=EVERYTHING)]
    documents += [explain_messages(done, asked) for asked in asked_for(done)]
    wrong = [words for document in documents for words, has_one in announcing(document) if not has_one]
    problems = as_report(done).problems or ()
    wrong += [words for one in problems for words, has_one in announcing(one.blocks) if not has_one]
    for group in as_object(done)["groups"]:
        remedies = [*group["remedies"], {"advice": group["advice"] or "", "statement": group["statement"]}]
        wrong += [
            one["advice"] for one in remedies if one["statement"] is None and ANNOUNCES.search(one["advice"])
        ]
    return wrong


def asked_for(done: Check) -> list[str]:
    """The messages to explain one by one: the oldest of the groups that are shown first."""
    return [str(group.first.handle) for group in done.groups[:EXPLAINED]]


def networks(folder: Path) -> Iterator[Check]:
    """Check random networks, with forwarders, mirrors, and databases that share a broker instance."""
    for number in range(NETWORKS):
        rng = random.Random(SEED + number)
        write_network(folder / str(number), exported_network(rng, 25))
        yield check([str(folder / str(number))])


def test_no_statement_is_announced_without_one(tmp_path: Path) -> None:
    write_estates(random.Random(SEED), tmp_path / "estates", range(4), less=2, scripted=2)
    announced = 0
    for done in [check([str(tmp_path / "estates")]), *networks(tmp_path)]:
        assert unannounced(done) == []
        announced += sum(has_one for _, has_one in announcing(make_document(done, limits=EVERYTHING)))
    assert announced > 10


def shop_with_copy(folder: Path, name: str = "Orders") -> Path:
    """COPY has a database with the broker instance of one of SHOP, where the acknowledgements of COPY return."""
    for instance, queue in (("SHOP", []), ("COPY", [waiting(1, "//stock", from_service_name="//orders")])):
        to_stock = route("ToStock", "//stock", "TCP://HUB:4022")
        export(
            folder,
            instance,
            databases=[database("msdb", "d4d4d4d4", 4), database(name, "0d0d0d0d")],
            service_broker_endpoints=[endpoint_of(instance)],
            routes={"msdb": [route("AutoCreatedLocal")], name: [route("AutoCreatedLocal"), to_stock]},
            services={"msdb": [], name: [{"name": "//orders"}]},
            conversation_endpoints={name: [endpoint(1)] if queue else []},
            transmission_queue={name: queue},
        )
    back = route("Back", "//orders", "TCP://SHOP:4022")
    export(
        folder,
        "HUB",
        databases=[database("msdb", "d4d4d4d4", 4), database("Stock", "0e0e0e0e")],
        service_broker_endpoints=[endpoint_of("HUB")],
        routes={"msdb": [route("AutoCreatedLocal")], "Stock": [back]},
        services={"msdb": [], "Stock": [{"name": "//stock"}]},
        conversation_endpoints={"Stock": []},
    )
    return folder


def endpoint_of(machine: str) -> dict[str, object]:
    return {"endpoint_id": 1, "is_message_forwarding_enabled": 0, "machine_name": machine, "port": 4022}


def test_a_copy_on_either_instance_can_get_another_broker_instance(tmp_path: Path) -> None:
    done = check([str(shop_with_copy(tmp_path))])
    [group] = done.groups
    new_broker = "-- USE [master];\n-- ALTER DATABASE [Orders] SET NEW_BROKER WITH ROLLBACK IMMEDIATE;"
    assert [(one.instance, one.remedy.statement) for one in group.advice] == [
        ("SHOP", new_broker),
        ("COPY", new_broker),
    ]
    assert unannounced(done) == []


@pytest.mark.parametrize("name", ["a\u202eb", "a$(x)"])
def test_a_copy_whose_name_cannot_be_pasted_gets_words(name: str, tmp_path: Path) -> None:
    done = check([str(shop_with_copy(tmp_path, name))])
    assert [one.remedy.statement for one in done.groups[0].advice] == [None, None]
    assert unannounced(done) == []


def test_a_cause_without_a_statement_is_said_again(tmp_path: Path) -> None:
    shop = whole_shop(
        tmp_path,
        [waiting(1, "//orders")],
        databases=[database("Orders", "0d0d0d0d", is_enabled=0), database("a\u202eb", "0e0e0e0e", is_enabled=0)],
        services={"a\u202eb": [{"name": "//orders"}]},
    )
    assert unannounced(check([str(shop)])) == []


@pytest.mark.parametrize(
    ("remedy", "has_explained_cause", "actions"),
    [
        (MessageRemedy("Why. Do that."), False, ["Why.", "Do that."]),
        (MessageRemedy("Why. Do that."), True, ["Do that."]),
        (MessageRemedy("Why."), True, ["Why."]),
        (MessageRemedy("Why.", "DROP", True), True, ["Run this:"]),
        (MessageRemedy("Why.", "-- DROP"), True, ["Uncomment what is right, and run it:"]),
        (MessageRemedy("Why.", "-- DROP", lead="There:"), True, ["There:"]),
        (MessageRemedy("Why.", "-- DROP", lead="There:"), False, ["Why.", "There:"]),
        (MessageRemedy("Why.", None, lead="There:"), True, ["Why."]),
        (MessageRemedy("Why.", None, lead="There:"), False, ["Why."]),
    ],
)
def test_the_announcing_sentence_is_made_of_the_statement(
    remedy: MessageRemedy, has_explained_cause: bool, actions: list[str]
) -> None:
    assert remedy.list_actions(has_explained_cause=has_explained_cause) == actions


def test_words_in_place_of_a_statement_announce_none() -> None:
    remedy = in_words("The broker is off.")
    assert remedy.list_actions(has_explained_cause=True) != []
    assert not any(map(ANNOUNCES.search, remedy.list_actions(has_explained_cause=False)))


def test_the_words_of_statuses_and_of_lint_announce_nothing() -> None:
    texts = [
        *WORDS.values(),
        *(finding.advice for finding in FINDINGS),
        *(advice(reason) or "" for reason in Reason),
    ]
    assert [text for text in texts if ANNOUNCES.search(text)] == []


def test_statements_alone_are_those_that_are_announced(tmp_path: Path) -> None:
    done = check([str(shop_with_copy(tmp_path))])
    assert [one.text.count("SET NEW_BROKER") for one in list_statements(done)] == [1, 1]
