"""Number the texts that a configuration names: those of messages are compared once, and not in each row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
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
from routing.tables.encoded_texts import split_words

if TYPE_CHECKING:
    import pyarrow

# The numbers of a text that is none of those which have one, and of no text at all; that of a name with an address
# that no instance has, and those of the addresses of instances, which go down from the last.
OTHER, NONE, _ELSEWHERE, _FIRST_ADDRESS = -1, -2, -3, -4


@dataclass
class TextNumbers:
    """The numbered texts: each text's number is its place among these.

    The database of the network, which is empty, stands first. All texts that nothing names share a number.
    ``addresses`` are those of the instances, as they are compared, with their numbers; None where no name is read
    for one.
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
            _number_addresses(named.addresses) if checked.has_transport else None,
        )

    def number_instances(self, words: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of instances."""
        return _places_among(words, self.instances)

    def number_databases(self, words: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of databases."""
        import pyarrow.compute as pc

        return _places_among(pc.fill_null(words, FROM_NETWORK), self.databases)

    def number_services(self, words: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of services: of one that has none that of the address in its name, if that counts."""
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
        """Return the numbers of broker instances, however they are written; `NONE` for what is no id."""
        import pyarrow
        import pyarrow.compute as pc

        brokers = read_brokers(words)
        none = pyarrow.scalar(NONE, pyarrow.int32())
        return pc.if_else(brokers.is_null(), none, _places_among(brokers, self.brokers))

    def key_of(
        self, instance: SqlInstance, database: str, service: int, broker: int, *, is_initiator: bool
    ) -> KeyRow:
        """Return the key of a service and a broker instance by their numbers, from a database of an instance."""
        name, kind = self._service(instance, service)
        broker_id, other = self._broker(instance.name, broker)
        of_services = int(is_initiator) + other + kind * SERVICE_FACTOR
        return KeyRow(instance.name, database, name, broker_id, of_services)

    def _service(self, instance: SqlInstance, number: int) -> tuple[str, int]:
        """Return a key's service in an instance: its name where anything there names it, and its class."""
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
        """Return a key's broker instance, if anything in the instance names it, and whether it has another."""
        if number == NONE:
            return "", 0
        broker = self.brokers[number] if number >= 0 else None
        return (
            (broker, 0) if broker is not None and (instance, broker) in self.named.brokers else ("", OTHER_BROKER)
        )


def _number_addresses(addresses: Collection[str]) -> dict[str, int]:
    return {address: _FIRST_ADDRESS - place for place, address in enumerate(sorted(addresses))}


def _places_among(words: pyarrow.Array, texts: list[str]) -> pyarrow.Array:
    """Return the position of each text among some; `OTHER` for one that is not among them."""
    import pyarrow
    import pyarrow.compute as pc

    return pc.fill_null(pc.index_in(words, value_set=pyarrow.array(texts, pyarrow.string())), OTHER)


# Columns of texts as words, each once, and the places of rows among them: so they are read and written.


class TextColumn(NamedTuple):
    """A column of texts: ``words`` are distinct and not null, ``places`` those of the rows, null for no text."""

    words: pyarrow.Array
    places: pyarrow.Array

    def array(self) -> pyarrow.Array:
        """Return the column, as it is written."""
        import pyarrow

        return pyarrow.DictionaryArray.from_arrays(self.places.cast(pyarrow.int32()), self.words)


@dataclass
class WordReader:
    """Reads parts of a column, with a function of its words that is asked once for those of a part.

    The function takes an array of texts and gives one of as many texts or nulls.
    """

    function: Callable[[pyarrow.Array], pyarrow.Array]
    _last: tuple[Any, Any, Any] | None = field(default=None, repr=False)

    def read(self, column: pyarrow.Array) -> TextColumn:
        """Apply the function to a part of the column."""
        words, places = split_words(column)
        # All parts of a group of rows in a file have the same.
        if self._last is None or not words.equals(self._last[0]):
            coded = self.function(words).dictionary_encode()
            self._last = words, coded.dictionary, coded.indices
        _, mapped_words, places_of_words = self._last
        return TextColumn(mapped_words, places_of_words.take(places))


def used_words(column: pyarrow.Array) -> TextColumn:
    """Return a column of texts as those words alone that its rows have."""
    words, places = split_words(column)
    used = places.dictionary_encode()
    # Among the words of a column that is null throughout is null.
    coded = words.take(used.dictionary).dictionary_encode()
    return TextColumn(coded.dictionary, coded.indices.take(used.indices))


def first_of(columns: Sequence[TextColumn]) -> TextColumn:
    """Return of each row the text of the first column that has one."""
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
    """Return a column of one text."""
    import pyarrow

    return TextColumn(pyarrow.array([word]), pyarrow.repeat(pyarrow.scalar(0, pyarrow.int32()), rows))


def number_groups(rows: pyarrow.Table, names: Sequence[str]) -> pyarrow.Array:
    """Return a number for each row, the same for those that are equal in some columns; null is equal to null."""
    import pyarrow
    import pyarrow.compute as pc

    numbers: Any = pyarrow.repeat(pyarrow.scalar(0, pyarrow.int64()), len(rows))
    for name in names:
        coded = rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
        pairs = pc.add(pc.multiply(numbers, len(coded.dictionary)), coded.indices)
        numbers = pairs.dictionary_encode().indices.cast("int64")
    return numbers
