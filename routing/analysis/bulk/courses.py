"""What the rules decide for the messages of one key, and the verdicts that such messages share.

Nothing is decided before a message asks for it, and nothing twice as long as there is room to remember it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from routing.analysis.bulk.remembering import remember
from routing.rules.deciding import Concerning, Decision, Key, named_broker, scope_of, signature
from routing.rules.estate import Instance
from routing.rules.hashing import pick
from routing.rules.requesting import Requests
from routing.rules.resolving import NO_DIALOG, Dialog, Message, Verdict, is_out_of_hops, judge, settled
from routing.rules.text import address_in_name


@dataclass
class Course:
    """What is decided for keys that differ in nothing which counts.

    ``changes`` are the times (microseconds) between which it stays the same: none where all is decided at one.
    ``decided`` has the decisions by the number of the span between two of them, as far as messages asked.
    """

    concerning: Concerning
    changes: Sequence[int]
    decided: dict[int, tuple[Decision, ...]] = field(default_factory=dict)

    def decide(self, t: int) -> tuple[int, tuple[Decision, ...]]:
        """The number of the span of a time, and its decisions: one for each broker id that step 3 may pick."""
        span = bisect_right(self.changes, t) if self.changes else 0
        decisions = self.decided.get(span)
        if decisions is None:
            decisions = self.decided[span] = self.concerning.decide(t)
        return span, decisions


@dataclass
class Keyed:
    """The messages for one service from one place, which are bound to one broker id (``broker``) or to none.

    ``verdicts`` are those that messages share: by span, pick, and whether they are out of hops.
    """

    course: Course
    broker: str | None
    service: str
    verdicts: dict[tuple[int, int, bool], Verdict] = field(default_factory=dict)

    def find_decision(self, message: Message) -> Decision:
        """What is decided for a message, whatever it asks for."""
        _, decisions = self.course.decide(message.t)
        return decisions[_picked(decisions, message)]

    def judge(self, message: Message, dialog: Dialog, requests: Requests) -> Verdict:
        """The verdict of a message. ``requests`` must know all that messages open (section 5)."""
        span, decisions = self.course.decide(message.t)
        number = _picked(decisions, message)
        decision = decisions[number]
        if decision.asks or decision.asks_again or (dialog is not NO_DIALOG and dialog.is_expired(message.t)):
            verdict = judge(message, dialog, decision, requests)
            if verdict.opens_in is not None or verdict.decision is None:
                return verdict
        place = span, number, is_out_of_hops(message.hops_remaining)
        shared = self.verdicts.get(place)
        if shared is None:
            address = address_in_name(self.service)
            shared = self.verdicts[place] = settled(decision, self.broker, message.hops_remaining, address)
        return shared


def _picked(decisions: Sequence[Decision], message: Message) -> int:
    """The place of the decision that a message's dialog gets (section 6)."""
    if len(decisions) == 1 or message.conversation_id is None:
        return 0
    return pick(range(len(decisions)), message.conversation_id)


@dataclass
class Courses:
    """The keys of messages, and what is decided for them; all at one time where ``as_of`` is set.

    ``_by_key`` and ``_by_signature`` hold the same courses: a signature is longer to make, and fewer keys have it.
    """

    as_of: int | None
    _keyed: dict[Hashable, Keyed] = field(default_factory=dict)
    _by_key: dict[Hashable, Course] = field(default_factory=dict)
    _by_signature: dict[Hashable, Course] = field(default_factory=dict)

    def of(self, instance: Instance, message: Message, broker: str | None) -> Keyed:
        """The messages of an instance like this one, which is bound to a broker id or to none."""
        told = message.instance, message.database, message.service, broker, message.is_initiator
        found = self._keyed.get(told)
        if found is None:
            found = Keyed(self._course(instance, message, broker), broker, message.service)
            remember(self._keyed, told, found)
        return found

    def _course(self, instance: Instance, message: Message, broker: str | None) -> Course:
        service, is_initiator = message.service, message.is_initiator
        named = named_broker(instance, scope_of(message.database), service, broker)
        told = message.instance, message.database, service, named, is_initiator
        found = self._by_key.get(told)
        if found is None:
            key = Key.of_names(instance, message.database, service, named, is_initiator=is_initiator)
            found = self._course_of(key, instance)
            remember(self._by_key, told, found)
        return found

    def _course_of(self, key: Key, instance: Instance) -> Course:
        shared = instance.name, key.database, signature(key, instance)
        found = self._by_signature.get(shared)
        if found is None:
            concerning = Concerning.of(key, instance)
            found = Course(concerning, concerning.changes() if self.as_of is None else ())
            remember(self._by_signature, shared, found)
        return found
