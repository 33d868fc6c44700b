"""What the rules say of an episode as of its start, or of any other time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from routing.analysis.bulk.courses import Courses, Keyed
from routing.analysis.bulk.dialogs import Dialogs
from routing.analysis.bulk.settling import Asking, Settlement
from routing.analysis.reconcile.episode import Episode
from routing.rules import reconciling
from routing.rules.deciding import Decision
from routing.rules.network import Network
from routing.rules.reconciling import Class, Compared
from routing.rules.rejecting import rejections
from routing.rules.requesting import Requests, Scope
from routing.rules.resolving import NO_DIALOG, Dialog, Message, Verdict, bound_broker, settled
from routing.rules.text import address_in_name
from routing.terms import MSDB, TRANSMISSION_QUEUE, MatchingStep


class Predicted(NamedTuple):
    """An episode's prediction and class. ``verdict`` is None where ``rejections`` say why nothing is predicted.

    ``picks`` is the number of broker ids that the dialog-ID hash picks among, None where it does not.
    """

    verdict: Verdict | None
    picks: int | None
    compared: Compared
    rejections: tuple[str, ...] = ()
