"""What the rules say of an episode as of its start, or of any other time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import lcm
from typing import Any, NamedTuple

from routing.analysis.bulk.courses import Courses, Keyed
from routing.analysis.bulk.dialogs import Dialogs
from routing.analysis.bulk.settling import Asking, settlements_of
from routing.analysis.reconcile.episode import Episode
from routing.rules import reconciling
from routing.rules.deciding import Decision
from routing.rules.estate import Instance
from routing.rules.network import Network
from routing.rules.reconciling import Class, Compared
from routing.rules.rejecting import is_sound, rejections
from routing.rules.requesting import Requests
from routing.rules.resolving import NO_DIALOG, Dialog, Message, Verdict, bound_broker, settled
from routing.rules.text import address_in_name
from routing.terms import BROKER_CONFIGURATION_SERVICE, FORWARD_DROPPED, MSDB, TRANSMISSION_QUEUE, Rejection

Side = tuple[str, "str | None", str, "bool | None"]
"""An end of a conversation: instance, database, folded conversation id, role."""


class Predicted(NamedTuple):
    """An episode's prediction and class. ``verdict`` is None where ``rejections`` say why nothing is predicted.

    ``picks`` is the number of broker ids that the dialog-ID hash picks among, None where it does not.
    """

    verdict: Verdict | None
    picks: int | None
    compared: Compared
    rejections: tuple[str, ...] = ()


class _Asked(NamedTuple):
    """An episode as a message, with its dialog, and what is decided for messages like it."""

    message: Message
    dialog: Dialog
    keyed: Keyed

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What may be decided: one, or one for each broker id that step 3 may pick."""
        return self.keyed.course.decide(self.message.t)[1]


@dataclass
class Predictor:
    """Judges episodes by the rules (sections 0 to 6), each as a message of its own.

    ``named`` has the broker id that the messages of a side name themselves, None where they name none; a side that
    is not in it is not known. Where any episode may ask for a route, all must have come by `settle` before the
    first is judged.
    """

    network: Network
    dialogs: Dialogs
    named: Mapping[Side, str | None]
    _courses: Courses = field(default_factory=lambda: Courses(None))
    _requests: dict[str, Requests] = field(default_factory=dict)

    def settle(self, episodes: Iterable[Episode]) -> None:
        """Find out which episodes open a request for a route (section 5)."""
        found = settlements_of(self.network)
        asking = {name for name, instance in self.network.instances.items() if _may_ask(instance)}
        for episode in episodes if asking else ():
            if episode.instance not in asking:
                continue
            asked = self._ask(episode, episode.first_at)
            if isinstance(asked, _Asked):
                decision = asked.keyed.find_decision(asked.message)
                if (decision.asks or decision.asks_again) and not asked.dialog.is_expired(asked.message.t):
                    found[episode.instance].add(Asking(asked.message, asked.dialog, decision))
        self._requests = {name: settlement.settle() for name, settlement in found.items()}

    def predict(self, episode: Episode, at: int | None = None) -> Predicted:
        """The prediction for an episode as of a time (microseconds), its start if none is given, and its class."""
        asked = self._ask(episode, episode.first_at if at is None else at)
        if not isinstance(asked, _Asked):
            return Predicted(None, None, Compared(Class.NOT_PREDICTED, _not_judged(asked)), asked)
        message, keyed = asked.message, asked.keyed
        verdict = keyed.judge(message, asked.dialog, self._requests[message.instance])
        picks = {decision.pick for decision in asked.decisions}
        others = () if len(picks) < 2 else self._others(asked)
        in_msdb = message.database in (None, MSDB) or verdict.rerouted_from is not None
        compared = reconciling.compare(episode.seen, verdict, others, in_msdb=in_msdb)
        return Predicted(verdict, len(picks) if len(picks) > 1 else None, compared)

    def class_at(self, episode: Episode, at: int) -> Class:
        """The class that an episode would have, had it begun at another time (microseconds)."""
        return self.predict(episode, at).compared.kind

    def _others(self, asked: _Asked) -> list[Verdict]:
        """The verdicts of all broker ids that may be picked."""
        message, broker = asked.message, asked.keyed.broker
        address = address_in_name(message.service)
        return [settled(decision, broker, message.hops_remaining, address) for decision in asked.decisions]

    def varies(self, episode: Episode) -> tuple[tuple[int, ...], int, bool]:
        """What decides besides what is known of an episode: times, the dialog-ID hash, and requests.

        The times (microseconds) at which what is decided for such messages changes; the number by which the hash
        is divided; and whether any asks for a route, so that each is decided by itself.
        """
        asked = self._ask(episode, episode.first_at)
        if not isinstance(asked, _Asked):
            return (), 1, False
        courses = [asked.keyed.course]
        if episode.source != TRANSMISSION_QUEUE and episode.broker_told is not None:
            # Whether an event's id is a pick or what the message is bound to depends on the time.
            for broker in (episode.broker_told, self.named.get(_side_of(episode))):
                message = replace(asked.message, broker=broker)
                courses.append(self._of_key(message, asked.dialog).keyed.course)
        changes = sorted({moment for course in courses for moment in course.changes})
        decided = [course.decide(t)[1] for course in courses for t in ((changes or [0])[0] - 1, *changes)]
        asks = any(one.asks or one.asks_again for decisions in decided for one in decisions)
        return tuple(changes), lcm(*map(len, decided)), asks

    def _ask(self, episode: Episode, at: int) -> _Asked | tuple[str, ...]:
        """The message that an episode is, or the codes for which nothing is predicted."""
        codes = self._rejections(episode)
        if codes or episode.service is None or episode.is_initiator is None:
            return codes
        side = _side_of(episode)
        ends = self.dialogs.of(episode.instance, episode.database)
        dialog = ends[episode.is_initiator].get(episode.conversation, NO_DIALOG)
        is_queued = episode.source == TRANSMISSION_QUEUE
        # Rows of queues that an older release imported do not tell it.
        own = episode.broker_told if is_queued and episode.broker_told else self.named.get(side)
        hops = episode.seen.hops_remaining if episode.source == FORWARD_DROPPED else None
        message = Message(
            f"{episode.conversation}:{'I' if episode.is_initiator else 'T'}",
            episode.conversation,
            episode.is_initiator,
            at,
            episode.instance,
            episode.database,
            episode.service,
            own,
            hops,
        )
        asked = self._of_key(message, dialog)
        told = episode.broker_told
        if is_queued or told is None or side in self.named or bound_broker(message, dialog) is not None:
            return asked
        # The id of an event is the one that was picked, or else what the message was bound to before.
        picked = {decision.pick for decision in asked.decisions}
        return asked if told in picked else self._of_key(replace(message, broker=told), dialog)

    def _of_key(self, message: Message, dialog: Dialog) -> _Asked:
        instance = self.network.instances[message.instance]
        return _Asked(message, dialog, self._courses.of(instance, message, bound_broker(message, dialog)))

    def _rejections(self, episode: Episode) -> tuple[str, ...]:
        """The codes for which nothing is predicted, as those of ``rejected_messages``."""
        instance, conversation = self.network.instances.get(episode.instance), episode.conversation
        database, is_known = episode.database, False
        if instance is not None:
            is_known = database in instance.databases if database is not None else episode.is_arrival
        if is_known and is_sound(
            conversation, conversation, episode.is_initiator, episode.first_at, episode.service, None
        ):
            return ()
        row: Mapping[str, Any] = {
            "message_id": conversation,
            "conversation_id": conversation,
            "is_initiator": episode.is_initiator,
            "enqueue_time": episode.first_at,
            "instance_name": episode.instance,
            "database_name": database,
            "to_service_name": episode.service,
            "hops_remaining": None,
        }
        codes = rejections(row, instance)
        if not episode.is_arrival and database is None:
            codes.append(Rejection.missing("database_name"))
        return tuple(codes)


def _side_of(episode: Episode) -> Side:
    return episode.instance, episode.database, episode.conversation, episode.is_initiator


def _may_ask(instance: Instance) -> bool:
    """Whether any message of an instance may meet step 4."""
    return any(BROKER_CONFIGURATION_SERVICE in routes for routes in instance.routes.values())


def _not_judged(codes: tuple[str, ...]) -> str:
    return f"Nothing is predicted: {', '.join(codes)}."
