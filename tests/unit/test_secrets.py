"""No secret in a configuration: refused by name or by value, and reported without it."""

from __future__ import annotations

import json
import time
import traceback
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from routing import cli
from routing.config import ConfigError, load
from routing.config.secrets import holds_secret, names_secret, without_secrets
from tests.unit.test_config import WHOLE

VALUE = "Hunter2-hunter2"
SECRET_NAMES = [
    "password",
    "PASSWORD",
    "db_password",
    "sqlPassword",
    "pwd",
    "secret",
    "token",
    "accessToken",
    "sas",
    "account_key",
    "AccountKey",
    "api-key",
    "private_key",
    "connectionString",
    "connection_string",
    "credentials",
    "spark.hadoop.fs.s3a.access.key",
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.session.token",
    "spark.hadoop.fs.s3a.encryption.key",
    "spark.hadoop.fs.s3a.bucket.estate.secret.key",
    "spark.hadoop.fs.azure.account.key.acct.dfs.core.windows.net",
    "fs.azure.account.key.acct.dfs.core.windows.net",
    "spark.hadoop.fs.azure.account.oauth2.client.secret.acct.dfs.core.windows.net",
    "spark.hadoop.fs.azure.sas.estate.acct.blob.core.windows.net",
    "spark.hadoop.fs.azure.sas.fixed.token.acct.dfs.core.windows.net",
    "spark.hadoop.google.cloud.auth.service.account.private.key",
    "spark.hadoop.fs.gs.auth.client.secret",
    "spark.hadoop.javax.jdo.option.ConnectionPassword",
    "spark.ssl.keyStorePassword",
    "spark.ssl.keyPassword",
    "spark.authenticate.secret",
    "spark.databricks.token",
]
HARMLESS_NAMES = [
    "routes",
    "broadcast_limit",
    "missing_route_namespace",
    "suppress",
    "spark.driver.memory",
    "spark.sql.shuffle.partitions",
    "spark.hadoop.fs.s3a.aws.credentials.provider",
    "spark.hadoop.fs.s3a.assumed.role.credentials.provider",
    "spark.hadoop.hadoop.security.credential.provider.path",
    "spark.hadoop.fs.s3a.endpoint",
    "spark.hadoop.fs.azure.account.auth.type.acct.dfs.core.windows.net",
    "spark.hadoop.fs.azure.account.oauth.provider.type.acct.dfs.core.windows.net",
    "spark.hadoop.fs.azure.sas.token.provider.type.acct.dfs.core.windows.net",
    "spark.hadoop.fs.azure.account.oauth2.client.id",
    "spark.hadoop.google.cloud.auth.service.account.json.keyfile",
    "spark.kerberos.keytab",
    "spark.kerberos.principal",
    "spark.ssl.keyStore",
    "spark.authenticate",
    "spark.authenticate.secret.file",
    "spark.authenticate.secretBitLength",
    "spark.security.credentials.hive.enabled",
    "spark.sql.redaction.string.regex",
    "spark.sql.parquet.columnarReaderBatchSize",
]
SECRET_VALUES = [
    "s3a://AKIDEXAMPLE:wJalrXUtn@estate/routes",
    "jdbc:sqlserver://srv;user=sa;password=Hunter2-hunter2",
    "https://user:Hunter2-hunter2@host/x",
    "https://ghs_token@host/x",
    "wasbs://c@acct.blob.core.windows.net/x?sv=2024&sig=Hunter2-hunter2",
    "https://b.s3.amazonaws.com/x?X-Amz-Algorithm=A&X-Amz-Signature=Hunter2",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=Hunter2==",
    "Endpoint=sb://x/;SharedAccessKey=Hunter2",
    "-Xmx1g -Djavax.net.ssl.trustStorePassword=Hunter2",
    "AKIAIOSFODNN7EXAMPLE",
    "-----BEGIN RSA PRIVATE KEY-----",
    "dapi0123456789abcdef0123456789abcdef",
]
HARMLESS_VALUES = [
    "data/routes",
    "s3a://estate/routes",
    "abfss://estate@acct.dfs.core.windows.net/routes",
    "gs://estate/a=1/token=none/routes",
    "tcp://host.example:4022",
    "main.broker.routes",
    "C:\\data\\routes",
    "a:b@c",
    "it's 50% off; or = not",
    "-XX:+UseSerialGC -Dderby.system.home=/tmp/x",
    "(?i)secret|password|token",
    "https://login.example/tenant/oauth2/token",
    "urn:a=b",
    "2026-01-05T12:00:00+02:00",
    "",
]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_names_of_secrets_are_recognized(name: str) -> None:
    assert names_secret(name)


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_harmless_names_are_not_secrets(name: str) -> None:
    assert not names_secret(name)


@pytest.mark.parametrize("value", SECRET_VALUES)
def test_values_with_secrets_are_recognized(value: str) -> None:
    assert holds_secret(value)


@pytest.mark.parametrize("value", [*HARMLESS_VALUES, None, True, 7])
def test_a_value_without_a_secret_is_accepted(value: object) -> None:
    assert not holds_secret(value)


def shown_refusal(values: Any, *overrides: str, file: str = "/conf/job.yaml") -> str:
    """Return the output for a refused configuration, with the traceback of --verbose."""
    text = values if isinstance(values, str) else yaml.safe_dump(values, allow_unicode=True)
    with pytest.raises(ConfigError) as caught:
        load(file, overrides, text=text)
    assert caught.value.exit_code == 2
    shown = "".join(traceback.format_exception(caught.value))
    assert VALUE not in shown
    assert "unter2" not in shown
    return str(caught.value)


def test_a_refused_secret_is_named_only_by_its_key() -> None:
    """Other faults of the file wait: their texts show values."""
    text = shown_refusal(
        {
            **WHOLE,
            "spark": {
                "spark.hadoop.fs.s3a.secret.key": VALUE,
                "spark.driver.extraJavaOptions": f"-Dx.password={VALUE}",
                "spark.driver.memory": "1g",
            },
            "tables": {**WHOLE["tables"], "routes": f"s3a://key:{VALUE}@estate/routes"},
            "resolve": {"dialog_hash": VALUE, "mode": VALUE},
            "password": VALUE,
            "lint": {"suppress": [{"object": "x", "api_key": VALUE}]},
        }
    )
    assert text == (
        "the configuration '/conf/job.yaml' seems to contain 5 secrets: 'lint.suppress.api_key'; 'password';"
        " 'spark.spark.driver.extraJavaOptions'; 'spark.spark.hadoop.fs.s3a.secret.key'; 'tables.routes' (remove"
        " it, and change it if others may have read it; let the platform give access: an instance role, a"
        " credential provider, the environment, the cluster's secret scope)"
    )


@pytest.mark.parametrize(
    ("override", "named"),
    [
        (f"spark.spark.hadoop.fs.s3a.secret.key={VALUE}", "--set 'spark.spark.hadoop.fs.s3a.secret.key'"),
        (f"spark.spark.hadoop.fs.s3a.secret.key=[{VALUE}", "--set 'spark.spark.hadoop.fs.s3a.secret.key'"),
        (f"spark={{spark.hadoop.fs.s3a.secret.key: {VALUE}}}", "--set 'spark'"),
        (f"spark={{spark.hadoop.fs.s3a.secret.key: '{VALUE}", "--set 'spark'"),
        (f"tables.routes=https://u:{VALUE}@h/x", "--set 'tables.routes'"),
        (f"password:{VALUE}", "a key of --set"),
        (f"https://u:{VALUE}@h/x", "a key of --set"),
    ],
)
def test_set_is_checked_too(override: str, named: str) -> None:
    assert f"seems to contain 1 secret: {named} (" in shown_refusal(WHOLE, override)


def test_a_secret_in_the_key_itself() -> None:
    text = shown_refusal({**WHOLE, "spark": {f"https://u:{VALUE}@h/x": "y"}})
    assert "1 secret: a key of spark (" in text


def test_a_secret_in_the_name_of_the_file() -> None:
    text = shown_refusal(WHOLE, file=f"s3a://key:{VALUE}@estate/job.yaml")
    assert text.startswith("the configuration '…' seems to contain 1 secret: the address of the file itself")


@pytest.mark.parametrize(
    "line", [f"password: *{VALUE}", f"password: !{VALUE} x", f'password: "{VALUE}', f"password: {VALUE}: x"]
)
def test_errors_in_yaml_hide_its_text(line: str) -> None:
    assert "is not valid YAML" in shown_refusal(f"tables: {{}}\n{line}\n")


@pytest.mark.parametrize("text", ["resolve: {as_of: 2026-13-01}", "a: " + "[" * 1_000])
def test_errors_of_the_parser_are_faults_of_the_file(text: str) -> None:
    assert "is not valid YAML" in shown_refusal(text)
    assert "is not valid YAML" in shown_refusal(
        WHOLE, text.replace(": ", "=", 1).replace("{as_of: ", "").rstrip("}")
    )


def _fanned(last: str) -> str:
    """Return nested lists. The last one has two thousand million million values."""
    return "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 52)) + last


_MERGED = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 52))
_LARGE = "it is larger than 2000000 characters, its aliases written out"
_CIRCLE = "it holds itself, by its own alias"
_NUMBER = "a number or time of more than 1000 characters"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (_fanned(""), _LARGE),
        # Where a text shows the value.
        (_fanned("resolve: {mode: *a51}"), _LARGE),
        (_fanned(f"b: {{token: {VALUE}, x: *a39}}"), _LARGE),
        (_MERGED, _LARGE),
        ("tables: '" + "x" * 2_000_000 + "'", _LARGE),
        ("a: &a [*a]", _CIRCLE),
        ("tables: &t {routes: *t}", _CIRCLE),
        ("tables: &t\n  <<: *t", _CIRCLE),
        ("tables: &t {routes: {x: [1, *t]}}", _CIRCLE),
        ("? &k [*k]\n: 1", _CIRCLE),
        ("tables: 0x" + "f" * 100_000, _NUMBER),
        ("tables: 1" + ":1" * 50_000, _NUMBER),
        ("tables: 1." + "1" * 100_000, _NUMBER),
    ],
)
def test_oversized_or_circular_yaml_is_refused_in_time(text: str, why: str) -> None:
    started = time.process_time()
    refusal = shown_refusal(text)
    assert time.process_time() - started < 5
    assert refusal.startswith("the configuration '/conf/job.yaml', line ")
    assert f": {why} (" in refusal


@pytest.mark.parametrize("value", ["&a [*a]", "0x" + "f" * 100_000, "{a: 1, a: 2}"])
def test_invalid_values_in_set_are_refused(value: str) -> None:
    assert "is not valid YAML" in shown_refusal(WHOLE, f"tables.routes={value}")


def test_an_alias_of_a_few_values_is_read() -> None:
    text = yaml.safe_dump(WHOLE) + "spark: {a: &a '1', b: *a, c: *a}\n"
    assert load("job.yaml", (), text).spark == {"a": "1", "b": "1", "c": "1"}


@pytest.mark.parametrize(
    "value",
    [
        *("x://" + ":" * 60_000, "eyJ-" * 25_000, "/" * 100_000, "http://" * 15_000, "a=" * 50_000, "a " * 50_000),
        *("a" * 100_000, "a." * 50_000, "a b" * 50_000),
    ],
)
def test_a_long_value_is_judged_at_once(value: str) -> None:
    started = time.process_time()
    assert not holds_secret(value)
    assert not names_secret(value)
    assert holds_secret(f"{value} password=x")
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    "value",
    [
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        "Bearer-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        "eyJ-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        "x.eyJ.eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.d",
        "x://a:b:c@host",
        "x://:b@host",
        "x://::@host",
    ],
)
def test_a_token_or_password_wherever_it_begins(value: str) -> None:
    assert holds_secret(value)


def test_the_command_prints_no_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump({**WHOLE, "spark": {"spark.ssl.keyPassword": VALUE}}), encoding="utf-8")
    for command in ("resolve", "lint", "runs"):
        assert cli.main([command, "--config", str(file), "--verbose"]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "'spark.spark.ssl.keyPassword'" in err
        assert VALUE not in err


@given(st.text(), st.text())
@example("", "A:")
def test_any_text_is_judged(key: str, value: str) -> None:
    names_secret(key)
    holds_secret(value)
    assert names_secret(f"{key}_password")
    assert holds_secret(f"{value} password=x")


def test_secrets_recorded_by_an_older_run_are_hidden() -> None:
    recorded = {
        "spark": {"spark.hadoop.fs.s3a.secret.key": VALUE, "spark.driver.memory": "1g"},
        "tables": {"routes": f"s3a://key:{VALUE}@estate/x", "messages": "/data/messages"},
        "lint": {"suppress": [{"token": VALUE, "object": "x"}]},
        "resolve": {"as_of": None},
    }
    shown = without_secrets(json.loads(json.dumps(recorded)))
    assert shown == {
        "spark": {"spark.hadoop.fs.s3a.secret.key": "…", "spark.driver.memory": "1g"},
        "tables": {"routes": "…", "messages": "/data/messages"},
        "lint": {"suppress": [{"token": "…", "object": "x"}]},
        "resolve": {"as_of": None},
    }
