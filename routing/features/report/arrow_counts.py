"""Messages counted in Arrow's tables and files: part by part, by numbers that stand for texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from routing.features.report.facts import MessageFlow, TimePoint
from routing.features.report.scale import DECIDED, ENQUEUED, FLOW, POINT, CountedFlows, Dialogs, ReportScale, Spans
from routing.tables.arrow_forms import split_tried
from routing.tables.arrow_rows import micros_in, plain_values
from routing.tables.encoded_texts import GroupSums, TextNumbering, TextPlaces, encoded
from routing.tables.table_columns import as_dataset, rows_where
from routing.terms import MSDB, MatchingStep

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

_BALANCED = ("instance_name", "database_name", "to_service_name", "broker_instance", "rerouted_from")
_READ = tuple(dict.fromkeys((*FLOW, *_BALANCED, ENQUEUED, DECIDED, "conversation_id", "matching_step")))
# Of such texts there are few.
_FEW = (*FLOW, "broker_instance")


@dataclass(frozen=True)
class ArrowMessages:
    """The rows that stand: those of messages tried once, and the last ones of the others, which are in memory."""

    rows: pyarrow.dataset.Dataset
    once: Any
    tried: pyarrow.Table

    @classmethod
    def of(cls, resolved: Any) -> ArrowMessages:
        """Open the messages of a table ``resolved_routes``."""
        rows = as_dataset(resolved)
        return cls(encoded(rows, _FEW), *split_tried(rows, _READ))

    def count_flows(self) -> CountedFlows:
        """Return every flow, and the time in which all messages were decided."""
        import pyarrow
        import pyarrow.compute as pc

        numbers = {name: TextNumbering() for name in FLOW}
        sums = GroupSums(FLOW, {"messages": "sum", "oldest": "min", "first": "min", "last": "max"})
        for part in self._parts((*FLOW, ENQUEUED, DECIDED)):
            coded = {name: numbers[name].number(part[name]) for name in FLOW}
            enqueued, decided = micros_in(part[ENQUEUED]), micros_in(part[DECIDED])
            told = {"messages": _ones(part), "oldest": enqueued, "first": decided, "last": decided}
            sums.add(pyarrow.table({**coded, **told}))
        found = sums.all()
        texts = (numbers[name].texts.take(found[name].combine_chunks()) for name in FLOW)
        columns = (*texts, found["messages"], found["oldest"])
        flows = [
            MessageFlow(*values) for values in zip(*(plain_values(column) for column in columns), strict=True)
        ]
        return CountedFlows(flows, pc.min(found["first"]).as_py(), pc.max(found["last"]).as_py())

    def count_points(self, scale: ReportScale) -> list[TimePoint]:
        """Count the messages over time, in steps of the scale."""
        import pyarrow

        services, instances = TextPlaces(scale.services), TextPlaces([(name,) for name in scale.instances])
        outcomes = TextNumbering()
        sums = GroupSums(("at", "instance", "service", "outcome"), {"messages": "sum"})
        for part in self._parts((*POINT, DECIDED)):
            told = {
                "at": _floor(micros_in(part[DECIDED]), scale.step),
                "instance": instances.find([part[POINT[0]]]),
                "service": services.find([part[name] for name in POINT[:2]]),
                "outcome": outcomes.number(part[POINT[2]]),
            }
            sums.add(pyarrow.table({**told, "messages": _ones(part)}))
        found, words = sums.all().to_pydict(), plain_values(outcomes.texts)
        return [
            TimePoint(
                at,
                None if instance is None else scale.instances[instance],
                None if service is None else scale.services[service][1],
                words[outcome],
                messages,
            )
            for at, instance, service, outcome, messages in zip(*found.values(), strict=True)
        ]

    def count_dialogs(self, spans: Spans) -> Dialogs:
        """Count the dialogs balanced to each broker id, each once, in its span of time."""
        import pyarrow
        import pyarrow.compute as pc

        if not spans:
            return {}
        scopes, brokers, names = TextPlaces(list(spans)), TextNumbering(), list(spans)
        bounds = [pyarrow.array(bound, pyarrow.int64()) for bound in zip(*spans.values(), strict=True)]
        dialogs = GroupSums(("scope", "broker", "dialog"), {})
        is_balanced = pc.field("matching_step") == int(MatchingStep.BALANCED)
        for part in self._parts((*_BALANCED, "conversation_id", DECIDED), is_balanced):
            places = scopes.find([part["instance_name"], _searched(part), part["to_service_name"]])
            told = {"scope": places, "broker": brokers.number(part["broker_instance"])}
            counts = pc.and_(pc.is_valid(places), _is_within(part, *(bound.take(places) for bound in bounds)))
            dialogs.add(rows_where(pyarrow.table({**told, "dialog": part["conversation_id"]}), counts))
        found = dialogs.all().group_by(["scope", "broker"]).aggregate([("dialog", "count")]).to_pydict()
        words = plain_values(brokers.texts)
        return {
            (*names[scope], words[broker]): dialogs for scope, broker, dialogs in zip(*found.values(), strict=True)
        }

    def _parts(self, names: Sequence[str], only: Any = None) -> Iterator[pyarrow.RecordBatch]:
        """Yield some columns of the rows for which a condition holds, few of them in memory at a time."""
        import pyarrow

        condition = only if self.once is None else self.once if only is None else self.once & only
        # What is read ahead is what takes memory.
        scanner = self.rows.scanner(list(names), filter=condition, batch_readahead=4, fragment_readahead=1)
        yield from scanner.to_batches()
        tried = as_dataset(self.tried).to_table(list(names), filter=only)
        # One at least, so that what is made of all parts has its columns.
        yield from tried.to_batches() or [pyarrow.RecordBatch.from_pylist([], tried.schema)]


def _ones(part: pyarrow.RecordBatch) -> pyarrow.Array:
    import pyarrow

    return pyarrow.repeat(1, len(part))


def _floor(times: pyarrow.Array, step: int) -> pyarrow.Array:
    """Return the beginnings of the steps in which times lie, those before 1970 too."""
    import pyarrow.compute as pc

    # Whole numbers are divided towards zero.
    toward_zero = pc.multiply(pc.divide(times, step), step)
    return pc.if_else(pc.greater(toward_zero, times), pc.subtract(toward_zero, step), toward_zero)


def _searched(part: pyarrow.RecordBatch) -> pyarrow.Array:
    """Return the database whose routes were searched: msdb for arrivals and for what came back."""
    import pyarrow
    import pyarrow.compute as pc

    came_back = pc.is_valid(part["rerouted_from"])
    own = part["database_name"].cast(pyarrow.string())
    return pc.if_else(came_back, MSDB, pc.coalesce(own, pyarrow.scalar(MSDB)))


def _is_within(part: pyarrow.RecordBatch, since: pyarrow.Array, until: pyarrow.Array) -> pyarrow.Array:
    """Return whether rows were decided from some time on and before another, each row's own; null is no bound."""
    import pyarrow.compute as pc

    decided = micros_in(part[DECIDED])
    is_begun = pc.greater_equal(decided, since).fill_null(True)
    return pc.and_(is_begun, pc.less(decided, until).fill_null(True))
