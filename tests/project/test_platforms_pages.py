"""The configurations and pages for Databricks and EMR load, and name only existing things."""

from __future__ import annotations

import re

import pytest
import yaml

from routing import config
from routing.config import ConfigError
from tests.project.platform_checks import EMR, ROOT

PAGES = ("databricks.md", "emr.md")
JOBS = [path.relative_to(ROOT) for path in sorted((ROOT / "resources").glob("*.job.yml"))]
ALERTS = [path.relative_to(ROOT) for path in sorted((ROOT / "resources").glob("*.alert.yml"))]
CONFIGURATIONS = ("databricks.yaml", "emr.yaml")


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def configuration_faults(name: str, text: str) -> list[str]:
    """A configuration for a platform must load, name tables as the platform does, and have no Spark settings.

    Serverless compute refuses most settings. On EMR they are part of the job.
    """
    try:
        loaded = config.load(str(ROOT / "conf" / name), text=text)
    except ConfigError as error:
        return [str(error)]
    faults = [f"spark.{key}" for key in loaded.spark]
    for key, place in {**loaded.tables, **loaded.output}.items():
        fits = place.text.startswith("s3://")
        if name == "databricks.yaml":
            fits = place.is_name and place.text.count(".") == 2
        if not fits:
            faults.append(f"{key} is {place}")
    return faults


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_fits_its_platform(name: str) -> None:
    assert configuration_faults(name, read(f"conf/{name}")) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "found"),
    [
        ("databricks.yaml", "tables:", "table:", "unknown key 'table'"),
        ("databricks.yaml", "  messages:", "  mesages:", "mesages"),
        ("databricks.yaml", "output:", "spark: {spark.x: 1}\noutput:", "spark.spark.x"),
        ("databricks.yaml", "service_broker.estate.routes", "estate.routes", "routes is estate.routes"),
        ("databricks.yaml", "service_broker.estate.routes", "s3://b/routes", "routes is s3://b/routes"),
        ("emr.yaml", "output:", "spark: {spark.x: 1}\noutput:", "spark.spark.x"),
        ("emr.yaml", "s3://my-bucket/service-broker/estate/routes", "estate.routes", "routes is estate.routes"),
        ("emr.yaml", "s3://my-bucket/service-broker/estate/routes", "s3n://b/routes", "routes is s3n://b/routes"),
    ],
)
def test_a_changed_configuration_is_found(name: str, old: str, new: str, found: str) -> None:
    text = read(f"conf/{name}")
    assert old in text
    assert found in "\n".join(configuration_faults(name, text.replace(old, new, 1)))


def page_faults(page: str, text: str) -> list[str]:
    """Return missing statements of a page, and commands on it that do not exist."""
    files = ["databricks.yml", *map(str, [*JOBS, *ALERTS]), "conf/databricks.yaml"]
    if page == "emr.md":
        files = [path.relative_to(ROOT).as_posix() for path in sorted(EMR.iterdir()) if path.is_file()]
        files.append("conf/emr.yaml")
    needed = [*files, "make wheel", "have not been run on the platform"]
    code = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    typed = re.findall(r"(?:deploy|conf|jobs|docs|resources)/[\w./-]+\w", code)
    faults = [f"{what} is not said" for what in needed if what not in text]
    # A configuration of the reader's own is called so throughout the documentation.
    faults += [f"{file} does not exist" for file in typed if not (ROOT / file).exists() and "mine" not in file]
    return faults + (databricks_faults(code) if page == "databricks.md" else emr_faults(code))


def databricks_faults(code: str) -> list[str]:
    bundle = yaml.safe_load(read("databricks.yml"))
    allowed = {
        r"databricks bundle (\w+)": {"validate", "deploy", "run", "destroy"},
        r"-t (\w+)": set(bundle["targets"]),
        r"(?:--var |BUNDLE_VAR_)(\w+)=": set(bundle["variables"]),
        r"bundle run -t \w+ (?:--only \w+ )?(\w+)": {path.name.partition(".")[0] for path in JOBS},
        r"--only (\w+)": {"import", "lint", "resolve"},
    }
    return [
        f"{word} does not exist"
        for pattern, words in allowed.items()
        for word in re.findall(pattern, code)
        if word not in words
    ]


def emr_faults(code: str) -> list[str]:
    script = read("deploy/emr/submit.sh")
    actions = re.findall(r"^#   ([\w-]+) ", script, re.MULTILINE)
    faults = [
        f"submit.sh has no {word}" for word in re.findall(r"submit\.sh ([\w-]+)", code) if word not in actions
    ]
    unsaid = [action for action in actions if f"submit.sh {action}" not in code]
    unknown = [name for name in re.findall(r"export (\w+)=", code) if not re.search(rf"\b{name}\b", script)]
    return [*faults, *(f"{name} is not shown" for name in unsaid), *(f"{name} is not known" for name in unknown)]


@pytest.mark.parametrize("page", PAGES)
def test_a_platform_page_is_valid(page: str) -> None:
    assert page_faults(page, read(f"docs/how-to/{page}")) == []


@pytest.mark.parametrize(
    ("page", "old", "new", "found"),
    [
        (
            "databricks.md",
            "resources/resolve.job.yml",
            "resources/job.yml",
            "resources/resolve.job.yml is not said",
        ),
        ("databricks.md", "have not been run on the platform", "run", "have not been run"),
        ("databricks.md", "databricks bundle deploy", "databricks bundle apply", "apply does not exist"),
        ("databricks.md", "-t cluster", "-t prod", "prod does not exist"),
        ("databricks.md", "BUNDLE_VAR_run_as", "BUNDLE_VAR_runas", "runas does not exist"),
        ("databricks.md", "-t serverless resolve", "-t serverless sbroute", "sbroute does not exist"),
        ("databricks.md", "--only lint nightly", "--only check nightly", "check does not exist"),
        ("emr.md", "deploy/emr/Dockerfile", "Dockerfile", "deploy/emr/Dockerfile is not said"),
        ("emr.md", "make wheel", "make", "make wheel is not said"),
        (
            "emr.md",
            "python deploy/emr/package.py",
            "python deploy/emr/pack.py",
            "deploy/emr/pack.py does not exist",
        ),
        ("emr.md", "submit.sh upload", "submit.sh put", "submit.sh has no put"),
        ("emr.md", "deploy/emr/submit.sh ec2", "true", "ec2 is not shown"),
        ("emr.md", "export CLUSTER_ID", "export CLUSTER", "CLUSTER is not known"),
    ],
)
def test_a_changed_page_is_found(page: str, old: str, new: str, found: str) -> None:
    text = read(f"docs/how-to/{page}")
    assert old in text
    assert found in "\n".join(page_faults(page, text.replace(old, new)))
