"""Number the texts that a configuration names: those of messages are compared once, and not in each row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.plan.checked_inputs import CheckedInputs, NamedThings
from routing.plan.key_rows import (
    CLASS_OF,
    FROM_NETWORK,
    KEY,
    KNOWN,
    OTHER_BROKER,
    SERVICE_FACTOR,
    TEXTS,
    KeyCounts,
    KeyRow,
    KeyTexts,
)
from routing.rules.estate import NameAddress, SqlInstance, address_of_name
from routing.tables.arrow_forms import fold_texts, leading_addresses, read_brokers
from routing.tables.arrow_rows import plain_values
from routing.tables.encoded_texts import TextNumbering, split_words
from routing.tables.table_columns import TableColumns

if TYPE_CHECKING:
    import pyarrow

# The numbers of a text that is none of those which have one, and of no text at all; that of a name with an address
# that no instance has, and those of the addresses of instances, which go down from the last.
OTHER, NONE, _ELSEWHERE, _FIRST_ADDRESS = -1, -2, -3, -4
# So many texts that nothing names are numbered besides; garbage beyond that is all alike.
MOST_UNNAMED = 100_000


@dataclass
class TextNumbers:
    """The numbered texts: each text's number is its place among these.

    The database of the network, which is empty, stands first. Services that nothing names are added as
    messages come with them, up to a limit. ``addresses`` are those of the instances, as they are compared, with
    their numbers; None where no name is read for one.
    """

    checked: CheckedInputs
    named: NamedThings
    instances: list[str]
    databases: list[str]
    services: TextNumbering
    brokers: list[str]
    addresses: dict[str, int] | None
    most_unnamed: int

    @classmethod
    def of(cls, checked: CheckedInputs, most_unnamed: int) -> TextNumbers:
        """Number the names of a configuration, and leave room for so many services that it does not name."""
        named = checked.named
        return cls(
            checked,
            named,
            sorted(checked.instances),
            sorted({FROM_NETWORK}.union(*(instance.databases for instance in checked.instances.values()))),
            _numbering({service for _, service in named.services}, most_unnamed),
            sorted({broker for _, broker in named.brokers}),
            _number_addresses(named.addresses) if checked.has_transport else None,
            most_unnamed,
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

        numbers = pc.fill_null(self.services.number(words), OTHER)
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

    def keys_of(self, groups: Iterable[tuple[Any, ...]]) -> KeyCounts:
        """Return the keys of groups: numbers of what `key_rows.READ` names, and how many rows, and sound ones."""
        read, valid, keys = 0, 0, dict[KeyRow, set[tuple[Any, ...]]]()
        for instance_number, database_number, service, broker, is_initiator, rows, sound in groups:
            read += rows
            if not sound or instance_number < 0 or database_number < 0:
                continue
            instance = self.checked.instances[self.instances[instance_number]]
            database = self.databases[database_number]
            if database == FROM_NETWORK or database in instance.databases:
                valid += sound
                key = self.key_of(instance, database, service, broker, is_initiator=is_initiator)
                role = key.kind % SERVICE_FACTOR + key.kind // OTHER_BROKER * OTHER_BROKER
                texts = (instance.name, database, self._service_of.get(service), key.broker, role)
                keys.setdefault(key, set()).add(texts)
        sorted_keys = sorted(keys)
        texts_of = _texts_of([keys[key] for key in sorted_keys], self.most_unnamed)
        return KeyCounts(_columns(KEY, sorted_keys), read, valid, is_exact=True, texts=texts_of)

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
        service = self._service_of.get(number)
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
    def _service_of(self) -> dict[int, str]:
        return dict(enumerate(plain_values(self.services.texts)))

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


def _numbering(named: Collection[str], most_unnamed: int) -> TextNumbering:
    """Return numbers for the names of a configuration, and for further names of messages."""
    import pyarrow

    return TextNumbering(pyarrow.array(sorted(named), pyarrow.string()), most=len(named) + most_unnamed)


def _number_addresses(addresses: Collection[str]) -> dict[str, int]:
    return {address: _FIRST_ADDRESS - place for place, address in enumerate(sorted(addresses))}


def _columns(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> TableColumns:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return TableColumns(dict(zip(names, columns, strict=True)))


def _texts_of(keys: Sequence[Collection[tuple[Any, ...]]], most_more: int) -> KeyTexts | None:
    """Return the texts that messages hold for each key; None where one is not known, or too many more."""
    numbered_texts = [(texts, place) for place, of_key in enumerate(keys) for texts in of_key]
    if len(numbered_texts) > len(keys) + most_more or any(None in texts for texts, _ in numbered_texts):
        return None
    return KeyTexts(
        _columns(TEXTS, [texts for texts, _ in numbered_texts]), [place for _, place in numbered_texts]
    )


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
