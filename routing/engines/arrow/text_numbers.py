"""Number the texts that a configuration names, to compare each text of messages once instead of in each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.plan.checked_inputs import CheckedInputs, NamedThings
from routing.plan.key_rows import (
    CLASS_OF,
    FROM_NETWORK,
    KNOWN,
    OTHER_BROKER,
    SERVICE_FACTOR,
    KeyRow,
)
from routing.rules.estate import NameAddress, SqlInstance, address_of_name
from routing.tables.arrow_forms import fold_texts, leading_addresses, read_brokers
from routing.tables.encoded_texts import MappedTexts, split_words

if TYPE_CHECKING:
    import pyarrow

# Numbers for an unknown text, for null, and for a name with an address that no instance has. The addresses of
# instances have the numbers from the last one downwards.
OTHER, NONE, _ELSEWHERE, _FIRST_ADDRESS = -1, -2, -3, -4


@dataclass
class TextNumbers:
    """The numbered texts. A text's number is its place in its list.

    The empty database, for messages from the network, comes first. All texts that nothing names share a number.
    ``addresses`` maps the folded addresses of the instances to their numbers. It is None if no route reads
    addresses from names.
    """

    checked: CheckedInputs
    named: NamedThings
    instances: list[str]
    databases: list[str]
    services: list[str]
    brokers: list[str]
    addresses: dict[str, int] | None

    @classmethod
    def of(cls, checked: CheckedInputs) -> TextNumbers:
        """Number the names of a configuration."""
        named = checked.named
        return cls(
            checked,
            named,
            sorted(checked.instances),
            sorted({FROM_NETWORK}.union(*(instance.databases for instance in checked.instances.values()))),
            sorted({service for _, service in named.services}),
            sorted({broker for _, broker in named.brokers}),
            {name: _FIRST_ADDRESS - place for place, name in enumerate(sorted(named.addresses))}
            if checked.has_transport
            else None,
        )

    def number_instances(self, words: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of instances."""
        return _places_among(words, self.instances)

    def number_databases(self, words: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of databases."""
        import pyarrow.compute as pc

        return _places_among(pc.fill_null(words, FROM_NETWORK), self.databases)

    def number_services(self, words: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of services. An unknown service may have the number of the address in its name."""
        import pyarrow
        import pyarrow.compute as pc

        numbers = _places_among(words, self.services)
        if self.addresses is None:
            return numbers
        in_names = fold_texts(leading_addresses(words))
        holds_one = pc.and_(pc.equal(numbers, OTHER), in_names.is_valid())
        if not pc.any(holds_one).as_py():
            return numbers
        addresses = pyarrow.array(list(self.addresses), pyarrow.string())
        of_addresses = pc.subtract(_FIRST_ADDRESS, pc.index_in(in_names, value_set=addresses))
        return pc.if_else(holds_one, pc.fill_null(of_addresses, _ELSEWHERE), numbers).cast(pyarrow.int32())

    def number_brokers(self, words: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of broker instances in any notation, or `NONE` for a text that is not an id."""
        import pyarrow
        import pyarrow.compute as pc

        brokers = read_brokers(words)
        none = pyarrow.scalar(NONE, pyarrow.int32())
        return pc.if_else(brokers.is_null(), none, _places_among(brokers, self.brokers))

    def key_of(
        self, instance: SqlInstance, database: str, service: int, broker: int, *, is_initiator: bool
    ) -> KeyRow:
        """Return the key of messages from a database, given the numbers of their service and broker instance."""
        name, kind = self._service(instance, service)
        broker_id, unlisted = self._broker(instance.name, broker)
        of_services = int(is_initiator) + unlisted + kind * SERVICE_FACTOR
        return KeyRow(instance.name, database, name, broker_id, of_services)

    def _service(self, instance: SqlInstance, number: int) -> tuple[str, int]:
        """Return a key's service and its class. The name is empty if nothing in the instance names the service."""
        service = self.services[number] if number >= 0 else None
        if service is not None and (instance.name, service) in self.named.services:
            return service, KNOWN
        if self.addresses is None or number == OTHER:
            address = NameAddress.NONE
        elif service is not None:
            address = address_of_name(service, instance.own_addresses)
        else:
            is_own = self._address_of.get(number) in instance.own_addresses
            address = NameAddress.OWN if is_own else NameAddress.ELSEWHERE
        return "", CLASS_OF[address]

    @cached_property
    def _address_of(self) -> dict[int, str]:
        return {number: address for address, number in (self.addresses or {}).items()}

    def _broker(self, instance: str, number: int) -> tuple[str, int]:
        """Return a key's broker instance if anything in the instance names it, and a mark for any other one."""
        if number == NONE:
            return "", 0
        broker = self.brokers[number] if number >= 0 else None
        return (
            (broker, 0) if broker is not None and (instance, broker) in self.named.brokers else ("", OTHER_BROKER)
        )


def _places_among(words: pyarrow.Array, texts: list[str]) -> pyarrow.Array:
    """Return the place of each word in some texts, or `OTHER`."""
    import pyarrow
    import pyarrow.compute as pc

    return pc.fill_null(pc.index_in(words, value_set=pyarrow.array(texts, pyarrow.string())), OTHER)


# Text columns as distinct words and each row's place among them.


class TextColumn(NamedTuple):
    """A text column: distinct ``words`` without null, and each row's place among them, or null without text."""

    words: pyarrow.Array
    places: pyarrow.Array

    def array(self) -> pyarrow.Array:
        """Return the column as a dictionary array."""
        import pyarrow

        return pyarrow.DictionaryArray.from_arrays(self.places.cast(pyarrow.int32()), self.words)

    def take(self, rows: pyarrow.Array) -> TextColumn:
        """Return some rows of the column."""
        return TextColumn(self.words, self.places.take(rows))

    def spread(self, rows: pyarrow.Array) -> TextColumn:
        """Return some rows, given as a dictionary array of their numbers, with only the words that they use."""
        local = self.places.take(rows.dictionary).dictionary_encode()
        return TextColumn(self.words.take(local.dictionary), local.indices.take(rows.indices))


class WordReader:
    """Applies a function to the distinct words of each batch of a column.

    The function takes an array of texts and returns texts or nulls of the same length.
    """

    def __init__(self, function: Callable[[pyarrow.Array], pyarrow.Array]) -> None:
        self._mapped = MappedTexts(lambda words: function(words).dictionary_encode())

    def read(self, column: pyarrow.Array) -> TextColumn:
        """Apply the function to a part of the column."""
        coded = self._mapped.of(column)
        return TextColumn(coded.dictionary, coded.indices)


def used_words(column: pyarrow.Array) -> TextColumn:
    """Return a text column with only the words that its rows use."""
    words, places = split_words(column)
    used = places.dictionary_encode()
    # Null is among the words of a column without values.
    coded = words.take(used.dictionary).dictionary_encode()
    return TextColumn(coded.dictionary, coded.indices.take(used.indices))


def first_of(columns: Sequence[TextColumn]) -> TextColumn:
    """Return each row's text from the first column that has one."""
    import pyarrow
    import pyarrow.compute as pc

    shifted, before = [], 0
    for column in columns:
        shifted.append(pc.add(column.places.cast(pyarrow.int64()), before))
        before += len(column.words)
    places = reduce(pc.coalesce, shifted)
    used = places.dictionary_encode()
    words = pyarrow.concat_arrays([column.words for column in columns]).take(used.dictionary)
    coded = words.dictionary_encode()
    return TextColumn(coded.dictionary, coded.indices.take(used.indices))


def same_for_all(word: str, rows: int) -> TextColumn:
    """Return a column with the same text in all rows."""
    import pyarrow

    return TextColumn(pyarrow.array([word]), pyarrow.repeat(pyarrow.scalar(0, pyarrow.int32()), rows))


def number_groups(rows: pyarrow.Table, names: Sequence[str]) -> pyarrow.Array:
    """Number rows so that those equal in some columns share a number. Null equals null."""
    import pyarrow
    import pyarrow.compute as pc

    numbers: Any = pyarrow.repeat(pyarrow.scalar(0, pyarrow.int64()), len(rows))
    for name in names:
        coded = rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
        pairs = pc.add(pc.multiply(numbers, len(coded.dictionary)), coded.indices)
        numbers = pairs.dictionary_encode().indices.cast("int64")
    return numbers
