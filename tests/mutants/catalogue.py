"""Ten ways to get a rule wrong: each a small change of the package's text."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """A rule and the change that breaks it: ``before``, which stands once in ``file``, becomes ``after``."""

    name: str
    rule: str
    file: str
    before: str
    after: str

    def applied(self, root: Path) -> str:
        """The file's text with the change made. Raises ValueError where the list no longer fits the code."""
        text = (root / self.file).read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            raise ValueError(f"{self.name}: {text.count(self.before)} times in {self.file}: {self.before!r}")
        changed = text.replace(self.before, self.after)
        ast.parse(changed, self.file)
        return changed


MUTANTS = (
    Mutant(
        name="initiator-is-a-reply",
        rule="1: only the target's message from outside is a reply",
        file="routing/locating.py",
        before="comes_back = is_from_network & ~is_initiator",
        after="comes_back = is_from_network",
    ),
    Mutant(
        name="step-2-takes-any-broker",
        rule="2.2: the route has no broker instance",
        file="routing/matching.py",
        before="return names_service(message, route) & route.broker.isNull()",
        after="return names_service(message, route)",
    ),
    Mutant(
        name="bound-message-is-balanced",
        rule="2.3: only an open message is balanced",
        file="routing/matching.py",
        before="route.broker.isNotNull() & message.broker.isNull()",
        after="route.broker.isNotNull()",
    ),
    Mutant(
        name="local-before-mirror",
        rule="3: routes with a mirror address come before LOCAL ones",
        file="routing/choosing.py",
        before="        F.when(mirrored, Tier.MIRROR.value)\n        .when(local, Tier.LOCAL.value)",
        after="        F.when(local, Tier.LOCAL.value)\n        .when(mirrored, Tier.MIRROR.value)",
    ),
    Mutant(
        name="local-without-destination",
        rule="3, D6: a LOCAL route is usable only where the destination is located",
        file="routing/choosing.py",
        before='route: route["kind"] == LOCAL_ADDRESS) & is_located',
        after='route: route["kind"] == LOCAL_ADDRESS)',
    ),
    Mutant(
        name="disabled-database-receives",
        rule="4: a database whose broker is off is passed over",
        file="routing/locating.py",
        before='able = F.filter(candidates, lambda holder: holder["is_enabled"])',
        after="able = candidates",
    ),
    Mutant(
        name="route-starts-late",
        rule="0: a route is in force from valid_from on, that moment included",
        file="routing/intervals.py",
        before="start <= valid_from",
        after="start < valid_from",
    ),
    Mutant(
        name="request-pends-at-its-end",
        rule="5: a request is pending until ended_at, that moment not included",
        file="routing/requests.py",
        before='(t < request["ended_at"])',
        after='(t <= request["ended_at"])',
    ),
    Mutant(
        name="acknowledged-too-late",
        rule="0: a dialog is bound from acknowledged_at on, that moment included",
        file="routing/keys.py",
        before='F.col("acknowledged_at") <= t',
        after='F.col("acknowledged_at") < t',
    ),
    Mutant(
        name="one-hop-too-many",
        rule="3: a message with no hops left is not forwarded",
        file="routing/resolving.py",
        before='F.col("hops_remaining") <= 0',
        after='F.col("hops_remaining") < 0',
    ),
)
