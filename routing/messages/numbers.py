"""What a configuration names, as small numbers: the texts of messages are compared once, and not in each row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from routing.messages.keying import KeyCounts, Texts
from routing.messages.rejecting import FROM_NETWORK
from routing.messages.validate import Checked
from routing.plan.estate import NamedThings
from routing.plan.keys import CLASS_OF, KEY, KNOWN, OTHER_BROKER, SERVICE_FACTOR, TEXTS
from routing.rules import text
from routing.rules.estate import Instance, NameAddress, address_of_name
from routing.storage.arrow import plain_values
from routing.storage.arrow_forms import fold_texts, read_brokers
from routing.storage.columns import Columns
from routing.storage.encoded import Numbering

if TYPE_CHECKING:
    import pyarrow

# The numbers of a text that is none of those which have one, and of no text at all; those of addresses in names
# go down from the last.
OTHER, NONE, _FIRST_ADDRESS = -1, -2, -3
# So many texts that nothing names are numbered besides; garbage beyond that is all alike.
_MOST_UNNAMED = 100_000


@dataclass
class Numbers:
    """What has numbers: each text is the place where it stands among these.

    The database of the network, which is empty, stands first. Services that nothing names are added as
    messages come with them, up to a limit. ``addresses`` are those, as they are compared, in names beyond it, with
    their numbers; None where no name is read for one.
    """

    checked: Checked
    named: NamedThings
    instances: list[str]
    databases: list[str]
    services: Numbering
    brokers: list[str]
    addresses: dict[str, int] | None

    @classmethod
    def of(cls, checked: Checked) -> Numbers:
        """Those of a configuration."""
        named = checked.named
        return cls(
            checked,
            named,
            sorted(checked.instances),
            sorted({FROM_NETWORK}.union(*(instance.databases for instance in checked.instances.values()))),
            _numbering({service for _, service in named.services}),
            sorted({broker for _, broker in named.brokers}),
            {} if checked.has_transport else None,
        )

    def number_instances(self, words: pyarrow.Array) -> pyarrow.Array:
        """The numbers of instances."""
        return _places_among(words, self.instances)

    def number_databases(self, words: pyarrow.Array) -> pyarrow.Array:
        """The numbers of databases."""
        import pyarrow.compute as pc

        return _places_among(pc.fill_null(words, FROM_NETWORK), self.databases)

    def number_services(self, words: pyarrow.Array) -> pyarrow.Array:
        """The numbers of services: of one that has none that of the address in its name, if that counts."""
        import pyarrow
        import pyarrow.compute as pc

        numbers = pc.fill_null(self.services.number(words), OTHER)
        if self.addresses is None:
            return numbers
        may_hold_one = pc.starts_with(fold_texts(words), "tcp://")
        found = numbers.to_pylist()
        places = pc.indices_nonzero(pc.and_(pc.equal(numbers, OTHER), may_hold_one))
        for place, word in zip(places.to_pylist(), plain_values(words.take(places)), strict=True):
            address = text.address_in_name(word)
            if address is not None:
                next_one = _FIRST_ADDRESS - len(self.addresses)
                found[place] = self.addresses.setdefault(text.comparable_address(address), next_one)
        return pyarrow.array(found, pyarrow.int32())

    def number_brokers(self, words: pyarrow.Array) -> pyarrow.Array:
        """The numbers of broker ids, however they are written; `NONE` for what is no id."""
        import pyarrow
        import pyarrow.compute as pc

        brokers = read_brokers(words)
        none = pyarrow.scalar(NONE, pyarrow.int32())
        return pc.if_else(brokers.is_null(), none, _places_among(brokers, self.brokers))

    def keys_of(self, groups: Iterable[tuple[Any, ...]]) -> KeyCounts:
        """The keys of groups: numbers of what `keying.READ` names, how many rows, and how many are sound."""
        read, valid, keys = 0, 0, dict[tuple[Any, ...], set[tuple[Any, ...]]]()
        for instance_number, database_number, service, broker, is_initiator, rows, sound in groups:
            read += rows
            if not sound or instance_number < 0 or database_number < 0:
                continue
            instance = self.checked.instances[self.instances[instance_number]]
            database = self.databases[database_number]
            if database == FROM_NETWORK or database in instance.databases:
                valid += sound
                name, kind = self._service(instance, service)
                bound, other = self._broker(instance.name, broker)
                role = int(is_initiator) + other
                key = (instance.name, database, name, bound, role + kind * SERVICE_FACTOR)
                texts = (instance.name, database, self._service_of.get(service), bound, role)
                keys.setdefault(key, set()).add(texts)
        found = sorted(keys)
        texts_of = _texts_of([keys[key] for key in found])
        return KeyCounts(_columns(KEY, found), read, valid, is_exact=True, texts=texts_of)

    def _service(self, instance: Instance, number: int) -> tuple[str, int]:
        """What a key says of a service in an instance: its name where anything there names it, and its class."""
        service = self._service_of.get(number)
        if service is not None and (instance.name, service) in self.named.services:
            return service, KNOWN
        if self.addresses is None or number == OTHER:
            address = NameAddress.NONE
        elif service is not None:
            address = address_of_name(service, instance.own_addresses)
        else:
            is_own = self._address_of[number] in instance.own_addresses
            address = NameAddress.OWN if is_own else NameAddress.ELSEWHERE
        return "", CLASS_OF[address]

    @cached_property
    def _service_of(self) -> dict[int, str]:
        return dict(enumerate(plain_values(self.services.texts)))

    @cached_property
    def _address_of(self) -> dict[int, str]:
        return {number: address for address, number in (self.addresses or {}).items()}

    def _broker(self, instance: str, number: int) -> tuple[str, int]:
        """What a key says of a broker id in an instance: the id if anything there names it, or that none does."""
        if number == NONE:
            return "", 0
        broker = self.brokers[number] if number >= 0 else None
        return (
            (broker, 0) if broker is not None and (instance, broker) in self.named.brokers else ("", OTHER_BROKER)
        )


def _numbering(named: Collection[str]) -> Numbering:
    """Numbers for what a configuration names, and for what messages come with besides."""
    import pyarrow

    return Numbering(pyarrow.array(sorted(named), pyarrow.string()), most=len(named) + _MOST_UNNAMED)


def _columns(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Columns:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return Columns(dict(zip(names, columns, strict=True)))


def _texts_of(keys: Sequence[Collection[tuple[Any, ...]]]) -> Texts | None:
    """What messages hold in place of each key; None where a text is not known, or where that is much more."""
    held = [(texts, place) for place, of_key in enumerate(keys) for texts in of_key]
    if len(held) > len(keys) + _MOST_UNNAMED or any(None in texts for texts, _ in held):
        return None
    return Texts(_columns(TEXTS, [texts for texts, _ in held]), [place for _, place in held])


def _places_among(words: pyarrow.Array, known: list[str]) -> pyarrow.Array:
    """Where each text stands among some; `OTHER` for one that is none of them."""
    import pyarrow
    import pyarrow.compute as pc

    return pc.fill_null(pc.index_in(words, value_set=pyarrow.array(known, pyarrow.string())), OTHER)
