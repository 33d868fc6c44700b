"""Everything that a reader can run: the test or stage of .ci/run that runs it, or why nothing can."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHOWN = "tests/project/test_shown_output.py::test_a_page_shows_what_its_commands_print"
EXIT_CODE = "tests/spark/test_jobs.py::test_a_job_ends_with_the_exit_code_of_its_command"
SUBMIT = "tests/project/test_platforms_emr_submit.py::"
OPERATOR = "tests/project/test_spark_operator.py::"
SCHEDULERS = "tests/project/test_schedulers.py::"
EMR = "tests/project/test_platforms_emr.py::"
BUNDLE = "tests/project/test_platforms.py::test_the_bundle_is_as_published_and_names_what_exists"
DOCS = "tests/project/test_docs.py::"
ZIP = "tests/project/test_platforms_emr_zip.py::"
DEMO_IMPORT = "tests/project/test_runnable.py::test_demo_import_runs_every_command"
REPOSITORY = "tests/project/test_repository.py::"
BY_HAND = "by hand: "

RUN_BY = {
    "make help": DOCS + "test_every_make_target_is_documented",
    "make setup": "make setup",
    "make check": "make check",
    "make test": "make test",
    "make test-spark": "make test-spark",
    "make test-project": "make test-project",
    "make test-matrix": "make test-matrix",
    "make test-connect": "make test-connect",
    "make test-cluster": "make test-cluster",
    "make test-s3": "make test-s3",
    "make test-browser": "make test-browser",
    "make test-crash": "make test-crash",
    "make bench-check": "make bench-check",
    "make demo": "tests/spark/test_demo.py::test_the_demo_shows_the_estates_and_the_day_and_can_be_run_again",
    "make demo-import": DEMO_IMPORT,
    "make java": "tests/project/test_runnable.py::test_a_target_has_the_expected_exit_code_and_output",
    "make chromium": "tests/project/test_runnable.py::test_a_target_has_the_expected_exit_code_and_output",
    "make wheel": "tests/project/test_runnable.py::test_a_target_has_the_expected_exit_code_and_output",
    "make format": BY_HAND + "changes the source; make check asks the same tools",
    "make clean": "tests/project/test_runnable.py::test_clean_removes_what_was_built",
    "make docs": "tests/project/test_site.py::test_every_page_is_built_and_has_a_place_in_the_navigation",
    "make docs-serve": BY_HAND + "serves until it is ended; what it serves is tested as make docs",
    "scripts/owner.py": REPOSITORY + "test_one_command_fills_in_the_account",
    "deploy/kubernetes/Dockerfile": REPOSITORY + "test_the_image_for_kubernetes_is_made_of_what_exists",
    "make owner": REPOSITORY + "test_one_command_fills_in_the_account",
    "make docs-output": SHOWN,
    "make pictures": "tests/project/test_terminal_pictures.py::test_a_picture_shows_what_the_command_prints",
    "make screenshot": DOCS + "test_the_page_on_reports_shows_one",
    "make notebooks": "tests/project/test_notebooks_run.py::test_the_output_of_a_notebook_equals_the_stored_one",
    "make reconcile-proof": "tests/unit/test_reconcile_proof.py::test_only_the_simulated_fault_is_named",
    "make test-long": BY_HAND + "a quarter of an hour",
    "make test-rules": BY_HAND + "a million random messages take over ten minutes",
    "make test-pythons": BY_HAND + "needs Pythons 3.10, 3.12 and 3.13, and over ten minutes",
    "make mutants": BY_HAND + "over an hour",
    "make bench": BY_HAND + "over ten minutes on a quiet machine",
    "make floor": BY_HAND + "over ten minutes on a quiet machine",
    "make newcomer": BY_HAND + "installs twice and runs all tests, over ten minutes",
    "make test-bundle": BY_HAND + "needs the Databricks CLI",
    "make test-airflow": BY_HAND + "installs Airflow, some 150 packages",
    "make lock": BY_HAND + "resolves all dependencies again and changes the locks",
    "scripts/setup.sh": "make setup",
    "scripts/java.sh": "tests/project/test_runnable.py::test_a_target_has_the_expected_exit_code_and_output",
    "scripts/chromium.sh": "tests/project/test_chromium_script.py::test_a_pair_on_the_path",
    "scripts/matrix.sh": "make test-matrix",
    "scripts/newcomer.py": "tests/project/test_runnable.py::test_newcomer_runs_what_the_readme_says",
    "scripts/lock.sh": BY_HAND + "make lock runs it",
    "scripts/pythons.sh": BY_HAND + "make test-pythons runs it",
    "jobs/candidates.py": EXIT_CODE,
    "jobs/check.py": EXIT_CODE,
    "jobs/diff.py": EXIT_CODE,
    "jobs/explain.py": EXIT_CODE,
    "jobs/import_.py": EXIT_CODE,
    "jobs/lint.py": EXIT_CODE,
    "jobs/messages.py": EXIT_CODE,
    "jobs/reconcile.py": EXIT_CODE,
    "jobs/report.py": EXIT_CODE,
    "jobs/resolve.py": "tests/platforms/test_cluster.py::test_a_run_by_spark_submit",
    "jobs/runs.py": EXIT_CODE,
    "jobs/trace.py": EXIT_CODE,
    "conf/local.yaml": DOCS + "test_the_example_configuration_shows_every_key_and_its_default",
    "conf/log4j2.properties": "tests/platforms/test_cluster.py::test_a_missing_table_exits_with_2_on_a_cluster",
    "conf/databricks.yaml": "tests/project/test_platforms_pages.py::test_a_configuration_fits_its_platform",
    "conf/emr.yaml": "tests/project/test_platforms_pages.py::test_a_configuration_fits_its_platform",
    "conf/examples/demo.py": DEMO_IMPORT,
    "conf/examples/import.yaml": DEMO_IMPORT,
    "conf/examples/exports": DEMO_IMPORT,
    "conf/examples/scripts": DEMO_IMPORT,
    "conf/examples/labels.sql": SHOWN,
    "conf/examples/spark-application.yaml": OPERATOR + "test_the_fields_are_as_published",
    "conf/examples/no-return": SHOWN,
    "conf/examples/pasted": SHOWN,
    "databricks.yml": BUNDLE,
    "resources/nightly.job.yml": BUNDLE,
    "resources/resolve.job.yml": BUNDLE,
    "resources/runs.alert.yml": BUNDLE,
    "deploy/airflow/sbroute_dag.py": SCHEDULERS + "test_the_commands_of_the_dag_are_valid",
    "deploy/airflow/databricks_dag.py": SCHEDULERS + "test_the_dag_for_databricks_starts_the_job_of_the_bundle",
    "deploy/airflow/emr_dag.py": SCHEDULERS + "test_the_dag_for_emr_sends_the_requests_of_the_files",
    "deploy/kubernetes/job.yaml": SCHEDULERS + "test_the_command_of_the_cron_job_is_valid",
    "deploy/emr/package.py": ZIP + "test_a_bare_python_runs_the_job_from_the_zip",
    "deploy/emr/submit.sh": SUBMIT + "test_a_run_on_serverless_is_started_and_waited_for",
    "deploy/emr/Dockerfile": EMR + "test_the_image_has_python_and_the_required_user",
    "deploy/emr/ec2-configurations.json": EMR + "test_the_step_and_the_cluster_are_as_published",
    "deploy/emr/ec2-step.json": EMR + "test_the_step_and_the_cluster_are_as_published",
    "deploy/emr/ec2-schedule.json": EMR + "test_a_schedule_starts_what_the_job_file_says",
    "deploy/emr/serverless-import-job-run.json": EMR + "test_the_job_run_is_as_published_and_names_what_exists",
    "deploy/emr/serverless-import-schedule.json": EMR + "test_a_schedule_starts_what_the_job_file_says",
    "deploy/emr/serverless-job-run.json": EMR + "test_the_job_run_is_as_published_and_names_what_exists",
    "deploy/emr/serverless-schedule.json": EMR + "test_a_schedule_starts_what_the_job_file_says",
    "notebooks": "tests/project/test_notebooks_run.py::test_the_output_of_a_notebook_equals_the_stored_one",
    "make bench-incremental": BY_HAND + "over ten minutes on a quiet machine",
    "make bench-cluster": BY_HAND + "over ten minutes on a quiet machine",
    "python -m tests.crash.dying": "make test-crash",
    "python -m tests.mutants": BY_HAND + "as make mutants",
    "python -m tests.store_release": BY_HAND + "writes the tables of a release, once for each release",
}
"""What runs each thing: a test, a stage of .ci/run, or nothing, and why."""


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@lru_cache
def _list_files(*places: str) -> tuple[str, ...]:
    listed = subprocess.run(["git", "ls-files", *places], cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(listed.stdout.split())


def _find_runnable() -> Iterator[str]:
    """Yield all make targets, scripts, jobs, deployment files, configurations, and files that pages run."""
    yield from (f"make {name}" for name in re.findall(r"^([a-z0-9-]+):.*## ", _read("Makefile"), re.MULTILINE))
    places = ("scripts", "jobs", "deploy", "conf", "resources", "databricks.yml", "notebooks")
    yield from (name for name in _list_files(*places) if not name.endswith(".md"))
    tracked = set(_list_files("."))
    for page in (name for name in tracked if name.endswith(".md")):
        for block in re.findall(r"^```(?:sh|bash|console)\n(.*?)^```", _read(page), re.DOTALL | re.MULTILINE):
            yield from tracked & set(re.findall(r"[\w./-]+", block))
        modules = re.findall(r"\bpython3? -m ((?:benchmarks|tests)[\w.]*)", _read(page))
        yield from (f"python -m {module}" for module in modules)


def _find_stages(gate: str) -> set[str]:
    """Return the make targets that .ci/run calls, by their whole names."""
    lines = [line for line in gate.splitlines() if not line.lstrip().startswith("#")]
    return set(re.findall(r"(?:\bstage |')(make [a-z0-9-]+)", "\n".join(lines)))


def _is_covered(name: str) -> bool:
    """Return True if the table has an entry for a thing, or for a folder that holds it."""
    return name in RUN_BY or any(str(folder) in RUN_BY for folder in Path(name).parents)


def test_everything_has_an_entry() -> None:
    assert {name for name in _find_runnable() if not _is_covered(name)} == set()


def test_every_entry_exists() -> None:
    runnable = set(_find_runnable())
    folders = {str(folder) for name in runnable for folder in Path(name).parents}
    assert set(RUN_BY) - runnable - folders == set()


@pytest.mark.parametrize("runner", sorted(set(RUN_BY.values())))
def test_the_runner_of_a_file_exists(runner: str) -> None:
    if runner.startswith(BY_HAND):
        return
    if runner.startswith("make "):
        assert runner in _find_stages(_read(".ci/run"))
        return
    file, _, test = runner.partition("::")
    functions = [node.name for node in ast.parse(_read(file)).body if isinstance(node, ast.FunctionDef)]
    assert test in functions


def test_demo_import_runs_every_command() -> None:
    done = _run("demo-import")
    assert done.returncode == 0, done.stdout + done.stderr
    commands = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("$ sbroute ")]
    assert commands == ["check", "import", "import", "resolve", "messages", "import", "resolve", "messages"]
    before, after = done.stdout.split("$ sbroute messages")[1:]
    assert before.splitlines()[1].startswith("4 of 8 messages are stuck")
    assert after.splitlines()[1] == "No message is stuck at its own instance."


@pytest.mark.parametrize(
    ("target", "printed"),
    [
        ("java", r"/.*\n"),
        ("chromium", r"/.*\n/.*chromedriver\n"),
        ("wheel", r"dist/service_broker_routing-.*\.whl\n"),
    ],
)
def test_a_target_has_the_expected_exit_code_and_output(target: str, printed: str) -> None:
    done = _run(target)
    assert (done.returncode, re.fullmatch(printed, done.stdout) is not None) == (0, True), (
        done.stdout + done.stderr
    )


def test_clean_removes_what_was_built(tmp_path: Path) -> None:
    """The test uses a copy, because other tests need the built files."""
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        (tmp_path / name).write_text(_read(name), encoding="utf-8")
    for folder in ("build", "dist", "routing/__pycache__", ".venv"):
        (tmp_path / folder).mkdir(parents=True)
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [".venv", "routing"]


def test_stages_are_found_by_their_full_name() -> None:
    stages = "stage make test-project\nANSI=false two_at_a_time 'make a ARGS=1' \\\n  'make b'\n"
    gate = f"{stages}# stage make c\necho make d\n"
    assert _find_stages(gate) == {"make test-project", "make a", "make b"}


README = """Text.
```sh
echo one  # a note

false
```
```python
no()
```
```sh
cd sub \\
  && pwd
make test
```
"""


@pytest.mark.parametrize(("more", "status"), [((), 1), (("--quick",), 1)])
def test_newcomer_runs_what_the_readme_says(more: tuple[str, ...], status: int, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "file").touch()
    (source / "README.md").write_text(README, encoding="utf-8")
    git = ["git", "-c", "user.name=a", "-c", "user.email=b", "-C", str(source)]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=first"]):
        subprocess.run([*git, *words], check=True)
    folders = ["--repository", str(source), "--folder", str(tmp_path / "clone")]
    line = [sys.executable, str(ROOT / "scripts" / "newcomer.py"), *folders, *more]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert re.sub(r"after \d+ s", "", done.stdout).split("\n\n")[:3] == [
        "\n$ echo one  # a note\none\n== exit code 0 ",
        "$ false\n== exit code 1 ",
        f"$ cd sub \\\n  && pwd\n{tmp_path / 'clone' / 'sub'}\n== exit code 0 " + ("\n" if more else ""),
    ]
    assert ("$ make test" in done.stdout) == (not more)


def _run(target: str) -> subprocess.CompletedProcess[str]:
    """Run a make target with this interpreter's environment."""
    if Path(sys.prefix) != ROOT / ".venv":
        pytest.skip("make uses .venv, which these tests do not run in")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", "--silent", target], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
