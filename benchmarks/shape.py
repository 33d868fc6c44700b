"""Describe the benchmark's data: its options, and the numbers that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

DATABASES = 4
SCOPES = DATABASES + 1
MESSAGES_A_DIALOG = 10
BALANCED = 4


@dataclass(frozen=True)
class Shape:
    """The properties of the data.

    ``keys`` is the approximate number of distinct routing keys. ``network`` is the share of arrivals from the
    network. ``bound`` is the share of messages with their own broker instance.

    ``dialogs`` is the number of rows in the dialogs table as a share of messages. With 0.1 every dialog has a row.
    The share ``acknowledged`` has an id from noon, the share ``open`` has no id, and BEGIN DIALOG binds the
    others.

    ``changes`` is the number of route versions that change in the day on the first instance. ``asking`` is the
    share of instances with a BrokerConfiguration route. ``hot`` is the share of dialogs that are moved to the
    first instance. ``garbage`` is the share of dialogs with a unique service name and broker instance that no
    object has. ``longest`` is the number of messages of the first dialog, if that is more than for the others.
    """

    messages: int = 10_000_000
    routes: int = 120_000
    instances: int = 200
    keys: int = 45_000
    network: float = 0.2
    bound: float = 0.2
    dialogs: float = 0.01
    acknowledged: float = 0.5
    open: float = 0.0
    changes: int = 0
    asking: float = 0.0
    hot: float = 0.0
    garbage: float = 0.0
    longest: int = 0

    @property
    def fits_subset(self) -> bool:
        """Whether the comparators, which know no versions and no requests, can decide every message."""
        return not self.changes and not self.asking

    @property
    def routes_a_scope(self) -> int:
        """Routes of each database of each instance."""
        return max(self.routes // (self.instances * SCOPES), 2)

    @property
    def named_services(self) -> int:
        """How many services the routes of a scope name."""
        groups, remainder = divmod(self.routes_a_scope, BALANCED + 2)
        # The first route of all is for any service, so that its group lacks a service.
        return max(groups * 3 + min(remainder, 2) - 1, 1)

    @property
    def numbers(self) -> int:
        """The number of key numbers to draw from, for about ``keys`` distinct routing keys.

        A number is one key, or two if its dialogs are acknowledged at noon. The unknown services of each scope are
        one more key, and another one for bound messages.
        """
        local_and_open = (1 - self.network) * (1 - self.bound)
        keys_a_number = 1 + self.with_row * self.acknowledged * local_and_open
        unknown = self.instances * SCOPES * 2
        if self.keys >= unknown * 2:
            return max(int((self.keys - unknown) / keys_a_number), 1)
        return max(int(self.keys / 2 / keys_a_number), 1)

    @property
    def with_row(self) -> float:
        """Share of dialogs that have a row in the dialogs table."""
        return min(self.dialogs * MESSAGES_A_DIALOG, 1.0)
