"""Batches at work on as many threads as there are cores, few of them at a time."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

B = TypeVar("B")
R = TypeVar("R")


def for_each_thread(batches: Iterator[B], work: Callable[[Iterator[B]], R]) -> list[R]:
    """Share batches among threads: each calls ``work`` once, with the batches that it gets in turn.

    Raises what the first of them raises, or what interrupts the calling thread, such as Ctrl-C; the others end
    with the batch that they are at.
    """
    lock, is_over = threading.Lock(), threading.Event()

    def some() -> Iterator[B]:
        while not is_over.is_set():
            with lock:
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def run(_: int) -> R:
        try:
            return work(some())
        except BaseException:
            is_over.set()
            raise

    count = os.cpu_count() or 1
    with ThreadPoolExecutor(count, thread_name_prefix="batches") as pool:
        try:
            return list(pool.map(run, range(count)))
        finally:
            is_over.set()


def read_ahead(parts: Iterable[Iterator[B]], most: int) -> Iterator[B]:
    """Yield all batches of several parts: ``most`` are read at a time, each by a thread and one batch ahead.

    Raises what reading a part raises.
    """
    waiting = iter(parts)
    with ThreadPoolExecutor(most, thread_name_prefix="parts") as pool:
        coming = deque((part, pool.submit(next, part, None)) for part in islice(waiting, most))
        while coming:
            part, first = coming.popleft()
            batch = first.result()
            following = next(waiting, None) if batch is None else part
            if following is not None:
                coming.append((following, pool.submit(next, following, None)))
            if batch is not None:
                yield batch
