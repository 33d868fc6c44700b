"""Choose the engine of a command: the local one if it can do the work, otherwise Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from routing.config import Config, ConfigError
from routing.delta import file_systems
from routing.delta.opening import ANOTHER_DISK, LocalOpener
from routing.errors import ContractError, EnvironmentFault
from routing.sessions import session
from routing.terms import AUTO, LOCAL_ENGINE, SPARK


@dataclass(frozen=True)
class SparkReason:
    """A reason to use Spark.

    ``refusal`` is the error if the local engine is named. It is None if the local engine can then do the work.
    """

    why: str
    refusal: ContractError | None


@dataclass(frozen=True)
class EngineChoice:
    """The engine of a command, and why it was chosen.

    ``refusal`` is the local engine's error if Spark was chosen because that engine cannot do the work.
    """

    engine: str
    why: str
    refusal: ContractError | None = None

    @property
    def is_local(self) -> bool:
        """Whether it is the local engine."""
        return self.engine == LOCAL_ENGINE

    def __str__(self) -> str:
        return f"{'local engine' if self.is_local else 'Spark'}: {self.why}"

    def check_installed(self) -> None:
        """Raise EnvironmentFault if Spark is chosen and pyspark is missing."""
        if self.is_local or find_spec("pyspark") is not None:
            return
        # Packages of the local engine are missing too. The error names these, because they are smaller.
        if isinstance(self.refusal, EnvironmentFault):
            raise self.refusal
        raise EnvironmentFault.no_package("pyspark", "local").for_spark(self.why)


def choose_engine(named: str, reasons: Iterable[SparkReason]) -> EngineChoice:
    """Choose the engine that ``named`` asks for: ``spark``, ``local``, or ``auto``.

    With ``auto``, the first reason chooses Spark, and further reasons are not looked for. Raises the refusal of a
    reason if the local engine is named.
    """
    if named == SPARK:
        return EngineChoice(SPARK, "resolve.engine is spark")
    for reason in reasons:
        if named == AUTO:
            return EngineChoice(SPARK, reason.why, reason.refusal)
        if reason.refusal is not None:
            raise reason.refusal
    return EngineChoice(
        LOCAL_ENGINE, "all tables are on this disk" if named == AUTO else "resolve.engine is local"
    )


def find_session_reasons(*, is_job: bool = False) -> Iterator[SparkReason]:
    """Yield the reasons to use Spark because a session is given, or because the command runs as a job."""
    if is_job:
        yield SparkReason("the command was started as a job", ConfigError.local_in_session())
    if session.is_given():
        yield SparkReason("a Spark session is given", ConfigError.local_in_session())


def find_run_reasons(config: Config) -> Iterator[SparkReason]:
    """Yield the reasons to use Spark for a run of the main job: its settings first, then its tables."""
    resolve = config.resolve
    if resolve.mode != "full":
        refusal = ConfigError.only_with_spark(f"resolve.mode: {resolve.mode}", "or resolve.mode: full")
        yield SparkReason(f"resolve.mode is {resolve.mode}", refusal)
    if resolve.dialog_hash == "udf":
        other = "or dialog_hash: builtin, which is the same"
        refusal = ConfigError.only_with_spark("resolve.dialog_hash: udf", other)
        yield SparkReason("resolve.dialog_hash is udf", refusal)
    if resolve.instances is not None:
        refusal = ConfigError.only_with_spark("resolve.instances", "or leave it out")
        yield SparkReason("resolve.instances is set", refusal)
    if config.cluster_by:
        refusal = ConfigError.only_with_spark("output.cluster_by", "or leave it out")
        yield SparkReason("output.cluster_by is set", refusal)
    for package in ("deltalake", "pyarrow"):
        if find_spec(package) is None:
            yield SparkReason(f"{package} is not installed", EnvironmentFault.no_package(package, "light"))
    yield from _find_table_reasons(config)


def _find_table_reasons(config: Config) -> Iterator[SparkReason]:
    """Yield the reasons to use Spark for the tables that a run reads and writes."""
    reads = {f"tables.{key}": location for key, location in config.tables.items()}
    if "imports" in config.import_tables:
        reads["tables.imports"] = config.import_tables["imports"]
    if config.journal is not None:
        reads["tables.unfinished_imports"] = config.journal
    writes = {f"output.{key}": location for key, location in config.output.items()}
    for key, location in {**reads, **writes}.items():
        if file_systems.is_open(location, config.spark):
            yield SparkReason(f"{key}: {ANOTHER_DISK.why}", None)
    for key, done, unfit in LocalOpener().find_unfit(reads, writes):
        why = f"{key} cannot be {done} by the local engine, {unfit.why}"
        yield SparkReason(why, ConfigError.only_by_spark(key, done, unfit.why))
