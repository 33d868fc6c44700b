"""Number the texts that a configuration names, to compare each text of messages once instead of in each row."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from routing.plan.checked_inputs import CheckedInputs
from routing.plan.key_rows import FROM_NETWORK
from routing.rules.matching import UNNAMED
from routing.rules.network import ServiceAddress
from routing.tables.arrow_forms import fold_texts, leading_addresses, read_brokers
from routing.tables.arrow_rows import plain_values
from routing.tables.encoded_texts import MappedTexts, TextNumbering, split_words

if TYPE_CHECKING:
    import pyarrow

# Numbers for an unknown text, and for a broker instance that is missing.
OTHER, NONE = -1, -2


@dataclass
class ServiceNumbers:
    """Numbers for service names, by the facts that the rules read from them (`ServiceAddress`).

    The names in the estate come first. Then follow a number for any name without an address, one for any name with
    an address that no instance has, and the addresses of instances as written. ``addresses`` has the folded
    addresses of all instances. It is None if no route reads addresses from names. Several threads may use it.
    """

    names: pyarrow.Array
    addresses: pyarrow.Array | None
    _written: TextNumbering = field(default_factory=TextNumbering)
    _services: dict[int, ServiceAddress] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, *sides: CheckedInputs) -> ServiceNumbers:
        """Number the services that any of several configurations names."""
        import pyarrow

        names = frozenset().union(*(checked.named.services_anywhere() for checked in sides))
        addresses = None
        if any(checked.has_transport for checked in sides):
            every = frozenset().union(*(checked.named.addresses for checked in sides))
            addresses = pyarrow.array(sorted(every), pyarrow.string())
        return cls(pyarrow.array(sorted(names), pyarrow.string()), addresses)

    def number(self, words: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of names. Null stays null."""
        import pyarrow.compute as pc

        count = len(self.names)
        numbers = pc.index_in(words, value_set=self.names, skip_nulls=True).cast("int64")
        if self.addresses is not None:
            in_names = leading_addresses(words)
            is_known = pc.is_in(fold_texts(in_names), value_set=self.addresses, skip_nulls=True)
            with self._lock:
                written = self._written.number(pc.if_else(is_known, in_names, None)).cast("int64")
            elsewhere = pc.if_else(in_names.is_valid(), count + 1, None)
            numbers = pc.coalesce(numbers, pc.add(written, count + 2), elsewhere)
        return pc.if_else(words.is_valid(), pc.fill_null(numbers, count), None)

    def service(self, number: int) -> ServiceAddress:
        """Return the service with a number. Many keys share one."""
        service = self._services.get(number)
        if service is None:
            service = self._services[number] = self._read(number)
        return service

    def _read(self, number: int) -> ServiceAddress:
        count = len(self.names)
        if number < count:
            return ServiceAddress.of_name(self.names[number].as_py())
        if number < count + 2:
            return ServiceAddress(None, None, holds_address=number > count)
        [address] = plain_values(self._written.texts[number - count - 2 : number - count - 1])
        return ServiceAddress(None, address, holds_address=True)


@dataclass
class TextNumbers:
    """The numbered texts of a configuration. A text's number is its place in its list.

    The empty database, for messages from the network, comes first. All texts that nothing names share a number.
    """

    services: ServiceNumbers
    instances: list[str]
    databases: list[str]
    brokers: list[str]

    @classmethod
    def of(cls, checked: CheckedInputs, services: ServiceNumbers | None = None) -> TextNumbers:
        """Number the names of a configuration. ``services`` are given if another one shares their numbers."""
        return cls(
            services or ServiceNumbers.of(checked),
            sorted(checked.instances),
            sorted({FROM_NETWORK}.union(*(instance.databases for instance in checked.instances.values()))),
            sorted({broker for _, broker in checked.named.brokers}),
        )

    def number_instances(self, words: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of instances."""
        return _places_among(words, self.instances)

    def number_databases(self, words: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of databases."""
        import pyarrow.compute as pc

        return _places_among(pc.fill_null(words, FROM_NETWORK), self.databases)

    def number_brokers(self, words: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of broker instances in any notation, or `NONE` for a text that is not an id."""
        import pyarrow
        import pyarrow.compute as pc

        brokers = read_brokers(words)
        none = pyarrow.scalar(NONE, pyarrow.int32())
        return pc.if_else(brokers.is_null(), none, _places_among(brokers, self.brokers))

    def broker(self, number: int) -> str | None:
        """Return the broker instance with a number, None for none, or `UNNAMED` if nothing names it."""
        if number == NONE:
            return None
        return self.brokers[number] if number >= 0 else UNNAMED


def _places_among(words: pyarrow.Array, texts: list[str]) -> pyarrow.Array:
    """Return the place of each word in some texts, or `OTHER`."""
    import pyarrow
    import pyarrow.compute as pc

    return pc.fill_null(pc.index_in(words, value_set=pyarrow.array(texts, pyarrow.string())), OTHER)


# Text columns as dictionary arrays, whose words are distinct and not null.


def map_words(function: Callable[[pyarrow.Array], pyarrow.Array]) -> MappedTexts:
    """Return the results of a function of texts, which returns texts or nulls, for each batch of a column."""
    return MappedTexts(lambda words: function(words).dictionary_encode())


def used_words(column: pyarrow.Array) -> pyarrow.Array:
    """Return a text column with only the words that its rows use."""
    words, places = split_words(column)
    used = places.dictionary_encode()
    # Null is among the words of a column without values.
    return words.take(used.dictionary).dictionary_encode().take(used.indices)


def spread(column: pyarrow.Array, rows: pyarrow.Array) -> pyarrow.Array:
    """Return some rows, given as a dictionary array of their numbers, with only the words that they use."""
    import pyarrow

    used = column.indices.take(rows.dictionary).dictionary_encode()
    words = column.dictionary.take(used.dictionary)
    return pyarrow.DictionaryArray.from_arrays(used.indices.take(rows.indices), words)


def first_of(columns: Sequence[pyarrow.Array]) -> pyarrow.Array:
    """Return each row's text from the first column that has one."""
    import pyarrow
    import pyarrow.compute as pc

    shifted, before = [], 0
    for column in columns:
        shifted.append(pc.add(column.indices.cast(pyarrow.int64()), before))
        before += len(column.dictionary)
    used = reduce(pc.coalesce, shifted).dictionary_encode()
    words = pyarrow.concat_arrays([column.dictionary for column in columns]).take(used.dictionary)
    return words.dictionary_encode().take(used.indices)


def same_for_all(word: str, rows: int) -> pyarrow.Array:
    """Return a column with the same text in all rows."""
    import pyarrow

    return pyarrow.DictionaryArray.from_arrays(pyarrow.repeat(pyarrow.scalar(0, pyarrow.int32()), rows), [word])


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
