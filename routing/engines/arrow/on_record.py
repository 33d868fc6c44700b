"""The requests for routes on record, and which messages they keep from opening another (rule book, section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.engines.arrow.asking import AskingRows, Scopes, number_places
from routing.rules.requesting import InstanceRequests, RequestScope, RouteRequest

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class OrderedRequests:
    """Requests of several groups: those of each stand together, in the order in which they were made.

    ``first`` and ``counts`` say where those of a group stand, ``most`` how many one has at most.
    """

    first: pyarrow.Array
    counts: pyarrow.Array
    at: pyarrow.Array
    message_id: pyarrow.Array
    ended_at: pyarrow.Array
    most: int

    @classmethod
    def of(cls, groups: Sequence[Sequence[RouteRequest]]) -> OrderedRequests:
        """Return the requests of groups, in any order."""
        import pyarrow
        import pyarrow.compute as pc

        whole = pyarrow.int64()
        counts = pyarrow.array([len(group) for group in groups], whole)
        requests = [request for group in groups for request in sorted(group, key=_position)]
        return cls(
            pc.subtract(pc.cumulative_sum(counts), counts),
            counts,
            pyarrow.array([one.requested_at for one in requests], whole),
            pyarrow.array([one.message_id for one in requests], pyarrow.large_string()),
            pyarrow.array([one.ended_at for one in requests], whole),
            max(map(len, groups), default=0),
        )

    def is_pending(self, groups: Any, at: Any, message_id: Any) -> Any:
        """Return a mask of messages that find the last request of their group before them pending."""
        import pyarrow.compute as pc

        place = pc.subtract(self._find_not_before(groups, at, message_id), 1)
        has_one = pc.greater_equal(place, self.first.take(groups))
        has_ended = pc.less_equal(self.ended_at.take(pc.if_else(has_one, place, 0)), at)
        return pc.and_not(has_one, pc.fill_null(has_ended, fill_value=False))

    def is_one_of(self, groups: Any, at: Any, message_id: Any) -> Any:
        """Return a mask of messages that have opened a request of their group."""
        import pyarrow.compute as pc

        place = self._find_not_before(groups, at, message_id)
        has_one = pc.less(place, pc.add(self.first.take(groups), self.counts.take(groups)))
        place = pc.if_else(has_one, place, 0)
        is_its_time, is_its_id = (
            pc.equal(self.at.take(place), at),
            pc.equal(self.message_id.take(place), message_id),
        )
        return pc.and_(has_one, pc.and_(is_its_time, is_its_id))

    def _find_not_before(self, groups: Any, at: Any, message_id: Any) -> Any:
        """Return of each message the place of the first request of its group that was not made before it.

        Where there is none, that is the place after the group's last.
        """
        import pyarrow.compute as pc

        low = self.first.take(groups)
        high = pc.add(low, self.counts.take(groups))
        for _ in range(self.most.bit_length()):
            is_open = pc.less(low, high)
            middle = pc.if_else(is_open, pc.divide(pc.add(low, high), 2), 0)
            its_time = self.at.take(middle)
            has_lower_id = pc.less(self.message_id.take(middle), message_id)
            is_before = pc.or_(pc.less(its_time, at), pc.and_(pc.equal(its_time, at), has_lower_id))
            low, high = (
                pc.if_else(pc.and_(is_open, is_before), pc.add(middle, 1), low),
                pc.if_else(pc.and_not(is_open, is_before), middle, high),
            )
        return low


class Openers(NamedTuple):
    """Messages that may open a request: ``others`` another one, ``own_requests`` their own on record."""

    others: AskingRows
    own_requests: AskingRows


@dataclass(frozen=True)
class RequestsOnRecord:
    """The requests on record of scopes and services.

    ``codes`` are numbers of a scope and one of the ``services``, whose place is that of its group: ``lasting`` are
    the requests that a message may find pending, ``all`` those that may be its own.
    """

    scopes: int
    services: pyarrow.Array
    codes: pyarrow.Array
    lasting: OrderedRequests
    all: OrderedRequests

    @classmethod
    def of(cls, scopes: Scopes, on_record: Mapping[str, InstanceRequests]) -> RequestsOnRecord:
        """Collect the requests on record of all instances."""
        import pyarrow

        numbers, services, codes = number_places(scopes), dict[str, int](), list[int]()
        groups = list[RequestScope]()
        for instance, requests in on_record.items():
            for (database, service), group in requests.scopes.items():
                number = numbers.get((instance, database))
                if number is not None:
                    codes.append(services.setdefault(service, len(services)) * len(scopes) + number)
                    groups.append(group)
        return cls(
            len(scopes),
            pyarrow.array(list(services), pyarrow.large_string()),
            pyarrow.array(codes, pyarrow.int64()),
            OrderedRequests.of([group.lasting for group in groups]),
            OrderedRequests.of([group.on_record for group in groups]),
        )

    def find_openers(self, asking: AskingRows) -> Openers:
        """Return the messages that find no request on record pending where they ask first."""
        import pyarrow
        import pyarrow.compute as pc

        services = pc.index_in(asking.services, value_set=self.services).cast("int64").take(asking.rows["word"])
        codes = pc.add(pc.multiply(services, self.scopes), asking.rows["ask_scope"])
        groups = pc.index_in(codes, value_set=self.codes, skip_nulls=True)
        has_any = groups.is_valid()
        recorded = asking.filter(has_any)
        if not len(recorded.rows):
            return Openers(asking, recorded)
        groups, position = groups.drop_null(), (recorded.rows["at"], recorded.rows["message_id"])
        opens = pc.invert(self.lasting.is_pending(groups, *position))
        is_own = self.all.is_one_of(groups, *position)
        others = [asking.filter(pc.invert(has_any)), recorded.filter(pc.and_not(opens, is_own))]
        return Openers(
            AskingRows(pyarrow.concat_tables([one.rows for one in others]), asking.services),
            recorded.filter(pc.and_(opens, is_own)),
        )


def _position(request: RouteRequest) -> tuple[int, str]:
    return request.requested_at, request.message_id
