"""Messages of plain rows, explained: no session, no stored tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from routing.features.explain.background import MessageBackground
from routing.features.explain.explaining import Explanation, answer
from routing.features.explain.judging import QuestionedMessage, RemedyFacts
from routing.features.explain.known_tables import KnownTables, OtherInstances
from routing.schemas import INPUTS, KEPT, ColumnKind, Schema
from routing.tables.table_columns import TableColumns
from tests.frames import Tables, moment
from tests.unit.rules.by_rules import micros

Row = dict[str, Any]


def columns_of_rows(rows: list[Row], schema: Schema) -> TableColumns:
    """Rows as the columns of a table; what is left out is null."""

    kinds = {field.name: field.kind for field in schema}

    def value(row: Row, name: str) -> Any:
        found = row.get(name)
        return micros(moment(found)) if kinds[name] == ColumnKind.TIMESTAMP else found

    return TableColumns({name: [value(row, name) for row in rows] for name in schema.names})


class KnownRows:
    """Tables of rows, read once, for many questions; ``asked`` counts how often other messages were asked for."""

    def __init__(self, tables: Tables) -> None:
        schemas = {**INPUTS, **KEPT}
        self.columns = {key: columns_of_rows(tables.get(key) or [], schema) for key, schema in schemas.items()}
        self.rows = list(self.columns["messages"].dicts())
        self.asked = 0
        others = OtherInstances(lambda: self.known.network.instances)
        self.known = KnownTables.of_columns(self.columns, self.chunks, others)

    def chunks(self, instance: str, service: str) -> Iterator[Mapping[str, TableColumns]]:
        """The messages of an instance for a service, in one chunk."""
        self.asked += 1
        mine = [row for row in self.rows if (row["instance_name"], row["to_service_name"]) == (instance, service)]
        messages = TableColumns({name: [row[name] for row in mine] for name in INPUTS["messages"].names})
        yield {"messages": messages, "dialogs": self.columns["dialogs"]}

    def explain(self, row: Row, *, is_described: bool = False, as_of: int | None = None) -> Explanation:
        """The explanation of a message row."""
        [read] = columns_of_rows([row], INPUTS["messages"]).dicts()
        here = {key: found.naming("instance_name", [row["instance_name"]]) for key, found in self.columns.items()}
        said = here["observed_routing"].naming("message_id", [row["message_id"]])
        background = MessageBackground.of_columns(
            here, {"observed_routing": said, "imports": here["imports"]}, read
        )
        service = read["to_service_name"]
        used = {row["to_service_name"] for row in self.rows if row["to_service_name"] != service}
        return answer(
            QuestionedMessage(read, is_described, as_of),
            self.known,
            background,
            lambda: RemedyFacts.of_columns(self.columns, service, used),
        )
