"""What the rules decide for the messages of one key, and the verdicts that such messages share.

Nothing is decided before a message asks for it, and nothing twice as long as there is room to remember it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from routing.rules.deciding import UNNAMED, Decision, Key, changes, decide_at, named_broker, signature
from routing.rules.estate import Instance
from routing.rules.hashing import pick
from routing.rules.requesting import Requests
from routing.rules.resolving import NO_DIALOG, Dialog, Message, Verdict, judge

# So many keys are remembered at a time: names and ids that messages invent are not to fill the memory.
MOST_KEYS = 100_000


@dataclass
class Course:
    """What is decided for keys that differ in nothing which counts.

    ``changes`` are the times (microseconds) between which it stays the same: none where all is decided at one.
    ``decided`` has the decisions by the number of the span between two of them, as far as messages asked.
    """

    key: Key
    instance: Instance
    changes: Sequence[int]
    decided: dict[int, tuple[Decision, ...]] = field(default_factory=dict)

    def decide(self, t: int) -> tuple[int, tuple[Decision, ...]]:
        """The number of the span of a time, and its decisions: one for each broker id that step 3 may pick."""
        span = bisect_right(self.changes, t) if self.changes else 0
        decisions = self.decided.get(span)
        if decisions is None:
            decisions = self.decided[span] = decide_at(self.key, self.instance, t)
        return span, decisions


@dataclass
class Keyed:
    """The messages of one key.

    ``broker`` is the id that they are bound to, where nothing in the instance has it, and None where it is the
    course's own. ``verdicts``: those that messages share, by span, pick, and whether hops remain.
    """

    course: Course
    broker: str | None
    verdicts: dict[tuple[int, int, bool], Verdict] = field(default_factory=dict)

    def find_decision(self, message: Message) -> Decision:
        """What is decided for a message, whatever it asks for."""
        _, decisions = self.course.decide(message.t)
        return self._own(decisions[_picked(decisions, message)])

    def judge(self, message: Message, dialog: Dialog, requests: Requests) -> Verdict:
        """The verdict of a message. ``requests`` must know all that messages open (section 5)."""
        span, decisions = self.course.decide(message.t)
        number = _picked(decisions, message)
        decision = decisions[number]
        if dialog is not NO_DIALOG and dialog.is_expired(message.t):
            return judge(message, dialog, self._own(decision), requests)
        if decision.asks or decision.asks_again:
            verdict = judge(message, dialog, self._own(decision), requests)
            if verdict.opens_in is not None:
                return verdict
        place = span, number, message.is_out_of_hops
        shared = self.verdicts.get(place)
        if shared is None:
            # All else that is a message's own has been looked at.
            shared = self.verdicts[place] = judge(message, dialog, self._own(decision), requests)
        return shared

    def _own(self, decision: Decision) -> Decision:
        return decision if self.broker is None else decision.bound_to(self.broker)


def _picked(decisions: Sequence[Decision], message: Message) -> int:
    """The place of the decision that a message's dialog gets (section 6)."""
    if len(decisions) == 1 or message.conversation_id is None:
        return 0
    return pick(range(len(decisions)), message.conversation_id)


@dataclass
class Courses:
    """The keys of messages, and what is decided for them; all at one time where ``as_of`` is set."""

    as_of: int | None
    _keyed: dict[Hashable, Keyed] = field(default_factory=dict)
    _courses: dict[Hashable, Course] = field(default_factory=dict)

    def of(self, instance: Instance, message: Message, broker: str | None) -> Keyed:
        """The messages of the key that a message of an instance has, which is bound to a broker id or to none."""
        told = instance.name, message.database, message.service, broker, message.is_initiator
        found = self._keyed.get(told)
        if found is None:
            _make_room(self._keyed)
            found = self._keyed[told] = self._find(instance, message, broker)
        return found

    def _find(self, instance: Instance, message: Message, broker: str | None) -> Keyed:
        service, is_initiator = message.service, message.is_initiator
        key = Key.of_names(instance, message.database, service, broker, is_initiator=is_initiator)
        named = named_broker(key, instance)
        shared = instance.name, signature(key, instance)
        course = self._courses.get(shared)
        if course is None:
            _make_room(self._courses)
            key = Key(key.database, key.service, named, key.is_initiator, key.name_address)
            times = changes(key, instance) if self.as_of is None else ()
            course = self._courses[shared] = Course(key, instance, times)
        return Keyed(course, broker if named == UNNAMED else None)


def _make_room(remembered: dict[Hashable, Keyed] | dict[Hashable, Course]) -> None:
    if len(remembered) >= MOST_KEYS:
        remembered.clear()
