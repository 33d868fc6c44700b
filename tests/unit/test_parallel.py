"""Threads that share batches, their early ends and their memory."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator

import pyarrow
import pytest

from routing.engines.arrow.resolved_batches import allocating_by_jemalloc, for_each_thread

MANY = 2_000


@pytest.fixture(autouse=True)
def _ctrl_c_is_an_exception() -> Iterator[None]:
    # Who runs the tests in the background has them ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _press_ctrl_c() -> None:
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


def _fail() -> None:
    raise OSError("No space left on device")


def test_each_batch_is_processed_once() -> None:
    shares = for_each_thread(iter(range(MANY)), lambda batches: list(batches))
    assert sorted(number for share in shares for number in share) == list(range(MANY))


@pytest.mark.parametrize(
    ("end", "error"), [(_press_ctrl_c, KeyboardInterrupt), (_fail, OSError)], ids=["Ctrl-C", "a thread that fails"]
)
def test_no_batch_starts_after_the_end(end: Callable[[], None], error: type[BaseException]) -> None:
    begun = []

    def work(batches: Iterator[int]) -> None:
        for number in batches:
            begun.append(number)
            if number == 5:
                end()
            time.sleep(0.001)

    with pytest.raises(error):
        for_each_thread(iter(range(MANY)), work)
    assert len(begun) < MANY / 2


@pytest.mark.parametrize("named", [None, "system"])
def test_jemalloc_is_the_default_allocator(monkeypatch: pytest.MonkeyPatch, named: str | None) -> None:
    if "jemalloc" not in pyarrow.supported_memory_backends():
        pytest.skip("this build of Arrow has no jemalloc")
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    if named is not None:
        monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", named)
    before = pyarrow.default_memory_pool().backend_name
    with allocating_by_jemalloc():
        assert pyarrow.default_memory_pool().backend_name == (before if named else "jemalloc")
    assert pyarrow.default_memory_pool().backend_name == before
