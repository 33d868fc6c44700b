"""Report a run as one event of OpenLineage: the job, the versions of its inputs and outputs, and its end.

OpenLineage's client is imported only if the configuration asks for events.
"""

from __future__ import annotations

import json
import os
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, cast

from routing.config import Config, LineageSettings, TableLocation
from routing.config.secrets import without_secrets
from routing.delta.counted_runs import release
from routing.errors import EnvironmentFault, first_sentence
from routing.terms import ReadRow

if TYPE_CHECKING:
    from openlineage.client.event_v2 import InputDataset, OutputDataset, RunEvent, RunState
    from openlineage.client.generated.base import DatasetFacet, OutputDatasetFacet, RunFacet
    from openlineage.client.transport import Transport

# Name tables and runs as OpenLineage does, so that other tools recognise them.


_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://([^/]*))?(.*)", re.DOTALL)
# The schemes of each store, and the one that OpenLineage uses. Names in these stores do not begin with a slash.
_STORES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("abfs", "abfss"), "abfss"),
    **dict.fromkeys(("wasb", "wasbs"), "wasbs"),
    "gs": "gs",
}


def dataset_of(location: TableLocation, settings: LineageSettings) -> tuple[str, str]:
    """Return a table's namespace and name: ``file`` and path, ``s3://bucket`` and key, catalog and name."""
    if location.is_name:
        return settings.catalog_namespace or settings.namespace, location.text
    uri = _URI.fullmatch(location.text)
    if uri is None:
        return "file", location.text
    scheme, authority, path = uri[1].lower(), uri[2] or "", uri[3].strip("/")
    if scheme in _STORES:
        return f"{_STORES[scheme]}://{authority}", path or "/"
    return f"{scheme}://{authority}" if authority else scheme, f"/{path}"


def uuid_of(run_id: str, runs: TableLocation) -> str:
    """Return a run's id if it is a UUID, or else a UUID that depends only on it and its job's table ``runs``."""
    try:
        if str(uuid.UUID(run_id)) == run_id.lower():
            return run_id.lower()
    except ValueError:
        # The id of a scheduler may be any text.
        pass
    # JSON writes every character in ASCII.
    return str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([runs.text, run_id])))


_COUNTED = {"resolved_routes": "rows_resolved", "rejected_messages": "rows_rejected"}
# The columns of a run's row for which OpenLineage has no field.
_BESIDES = (
    *("mode", "as_of", "now", "rows_read", "rows_resolved", "rows_unchanged", "rows_rejected"),
    *("outcome_counts", "release"),
)


def check_client(config: Config) -> None:
    """Raise EnvironmentFault if events are wanted and OpenLineage's client is missing."""
    if config.lineage.is_wanted:
        try:
            import openlineage.client.event_v2  # noqa: F401
        except ImportError as error:
            raise EnvironmentFault.no_package("openlineage-python", "lineage") from error


def completed(config: Config, row: ReadRow) -> RunEvent:
    """Return the event of a recorded run from its row of ``runs``, which lacks the version of that table."""
    from openlineage.client.event_v2 import RunState

    versions = row["output_versions"]
    counts = {**{key: row[name] for key, name in _COUNTED.items()}, "runs": 1}
    event = _event(config, RunState.COMPLETE, row, {name: row[name] for name in _BESIDES}, {})
    event.inputs = _inputs(config, row["input_versions"])
    event.outputs = _outputs(config, [*versions, "runs"], versions, counts)
    return event


def failed(config: Config, run_id: str, started: datetime, ended: datetime, error: BaseException) -> RunEvent:
    """Return the event of a run that failed. It has no versions, because nothing of the run counts."""
    from openlineage.client.event_v2 import RunState
    from openlineage.client.generated.error_message_run import ErrorMessageRunFacet

    mode = config.resolve.mode
    why = ErrorMessageRunFacet(without_secrets(first_sentence(error)), "PYTHON", producer=_producer())
    row = {"run_id": run_id, "started_at": started, "finished_at": ended}
    event = _event(config, RunState.FAIL, row, {"mode": mode}, {"errorMessage": why})
    event.inputs = _inputs(config, {})
    # A full run does not write pending_messages.
    written = [key for key in config.output if mode != "full" or key != "pending_messages"]
    event.outputs = _outputs(config, written, {}, {})
    return event


def _event(
    config: Config,
    state: RunState,
    row: ReadRow,
    besides: Mapping[str, object],
    facets: Mapping[str, RunFacet],
) -> RunEvent:
    """Return an event without datasets for a ``row`` with run_id, started_at and finished_at.

    Its facet ``sbroute_run`` has these columns and the values in ``besides``.
    """
    from openlineage.client.event_v2 import Job, Run, RunEvent
    from openlineage.client.generated.base import RunFacet
    from openlineage.client.generated.job_type_job import JobTypeJobFacet

    run_facts = {name: _plain(row[name]) for name in ("run_id", "started_at", "finished_at")}
    run_facet = RunFacet(producer=_producer()).with_additional_properties(
        **run_facts, **{name: _plain(value) for name, value in besides.items()}
    )
    kind = JobTypeJobFacet("BATCH", "SBROUTE", "JOB", producer=_producer())
    return RunEvent(
        eventTime=run_facts["finished_at"],
        eventType=state,
        producer=_producer(),
        run=Run(
            uuid_of(row["run_id"], config.output["runs"]), {"sbroute_run": cast("RunFacet", run_facet), **facets}
        ),
        job=Job(config.lineage.namespace, config.lineage.job, {"jobType": kind}),
    )


def _inputs(config: Config, versions: Mapping[str, int | None]) -> list[InputDataset]:
    from openlineage.client.event_v2 import InputDataset

    return [
        InputDataset(*dataset_of(where, config.lineage), facets=_version(versions.get(key)))
        for key, where in config.tables.items()
    ]


def _outputs(
    config: Config, keys: Iterable[str], versions: Mapping[str, int], counts: Mapping[str, int]
) -> list[OutputDataset]:
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet

    def counted(key: str) -> dict[str, OutputDatasetFacet]:
        if key not in counts:
            return {}
        return {"outputStatistics": OutputStatisticsOutputDatasetFacet(counts[key], producer=_producer())}

    return [
        OutputDataset(
            *dataset_of(config.output[key], config.lineage),
            facets=_version(versions.get(key)),
            outputFacets=counted(key),
        )
        for key in keys
    ]


def _version(version: int | None) -> dict[str, DatasetFacet]:
    """Return the version of a table, or nothing for an input without versions."""
    from openlineage.client.generated.dataset_version_dataset import DatasetVersionDatasetFacet

    return {} if version is None else {"version": DatasetVersionDatasetFacet(str(version), producer=_producer())}


def _producer() -> str:
    """Return this package and its release, as a URI."""
    return f"pkg:generic/service-broker-routing@{release()}"


def _plain(value: Any) -> Any:
    """Return a value for JSON. A time becomes ISO 8601 text in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    return dict(value) if isinstance(value, Mapping) else value


# Send an event of OpenLineage, only to the server or file that the configuration names.
#
# Of OpenLineage's environment variables and files, only OPENLINEAGE_API_KEY is read. The others could name more
# receivers.


API_KEY = "OPENLINEAGE_API_KEY"
# The timeouts for each answer of a server, and for all of them, because a server may answer in small pieces.
ANSWER_SECONDS, TOTAL_SECONDS = 5.0, 10.0
_THREAD = "lineage event"


def send(
    make: Callable[[], RunEvent],
    settings: LineageSettings,
    *,
    answer_seconds: float = ANSWER_SECONDS,
    total_seconds: float = TOTAL_SECONDS,
) -> str | None:
    """Create an event and send it once. Return the reason for not sending it, as the end of a sentence, or None.

    This function raises nothing and takes at most ``total_seconds``. It waits ``answer_seconds`` for each answer
    of a server.
    """
    faults: list[str] = []
    # The process does not wait for a daemon thread when it ends, so a server that never answers cannot block it.
    thread = threading.Thread(
        target=_send, args=(make, settings, answer_seconds, faults), name=_THREAD, daemon=True
    )
    thread.start()
    thread.join(total_seconds)
    if thread.is_alive():
        return f"no answer within {total_seconds:g} seconds"
    return faults[0] if faults else None


def _send(
    make: Callable[[], RunEvent], settings: LineageSettings, answer_seconds: float, faults: list[str]
) -> None:
    try:
        transport = _transport(settings, answer_seconds)
        try:
            transport.emit(make())
        finally:
            transport.close()
    # Any error is only reported, because it must not fail a run that counts.
    except Exception as error:  # noqa: BLE001
        faults.append(first_sentence(error))


def _transport(settings: LineageSettings, answer_seconds: float) -> Transport:
    """Create the transport of the settings. Raises ValueError for a key that a header cannot contain."""
    if settings.file is not None:
        from openlineage.client.transport.file import FileConfig, FileTransport

        return FileTransport(FileConfig(settings.file, append=True))
    from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport, TokenProvider
    from requests import Session

    key = os.environ.get(API_KEY, "").strip()
    if not (key.isascii() and key.isprintable()):
        # The libraries would put the key into their errors.
        raise ValueError(f"{API_KEY} holds characters that no header takes")
    session = Session()
    # Do not follow redirects: they turn a POST into a GET, so the event would be lost.
    session.max_redirects = 0
    return HttpTransport(
        HttpConfig(
            url=f"{str(settings.url).rstrip('/')}/",
            timeout=answer_seconds,
            auth=ApiKeyTokenProvider({"api_key": key}) if key else TokenProvider({}),
            session=session,
            retry={"total": 0},
        )
    )
