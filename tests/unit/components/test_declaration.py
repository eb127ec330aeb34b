"""A spec and its environment are read together, and every mistake of both is in one report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import certifi
import pytest
from lakewright.environment.cluster import TRIAL_IMAGES
from lakewright.environment.environment import Environment
from lakewright.environment.stack_config import read_stack_config
from lakewright.spec import SpecError, TenantSpec

BARE = "lakekeeper: {endpoint: 'https://lakekeeper.example'}\n"
ARN = "arn:aws:iam::123456789012:role/lakekeeper"


def small(**changes: Any) -> dict[str, Any]:
    """Return the smallest spec, with other values."""
    spec: dict[str, Any] = {
        "version": 1,
        "environment": "here",
        "name": "acme",
        "owner": "data@acme.example",
        "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
        "warehouses": [{"name": "executions"}],
    }
    return spec | changes


def read(folder: Path, spec: Any, environment: str, region: str | None = None) -> tuple[TenantSpec, Environment]:
    (folder / "here.yaml").write_text(environment)
    return read_stack_config(spec, source="the stack", environments=folder, environ={}, region=region)


def mistakes(folder: Path, spec: Any, environment: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read(folder, spec, environment)
    return [problem.path for problem in caught.value.problems]


def test_mistakes_of_spec_and_environment_are_one_report(tmp_path: Path) -> None:
    problem_paths = mistakes(tmp_path, small(colour="blue", maintenance={"schedule": "2 o'clock"}), BARE)

    assert problem_paths == [
        "maintenance.schedule",
        "colour",
        "storage.main.region",
        "environment here: lakekeeper.principal_arn",
        "maintenance.image",
    ]


def test_mistakes_of_the_environment_come_with_its_file(tmp_path: Path) -> None:
    problem_paths = mistakes(tmp_path, small(colour="blue"), BARE + "aws: {zone: x}\n")

    assert problem_paths == ["colour", str(tmp_path / "here.yaml")]


def test_unknown_environment_is_reported_once(tmp_path: Path) -> None:
    assert mistakes(tmp_path, small(environment="../here"), BARE) == ["environment"]


@pytest.mark.parametrize("stack", [True, False])
def test_vending_depends_on_the_default_region_too(*, stack: bool, tmp_path: Path) -> None:
    region = "cn-north-1"
    principal = ARN.replace("arn:aws:", "arn:aws-cn:")
    environment = f"lakekeeper: {{endpoint: 'https://lakekeeper.example', principal_arn: '{principal}'}}\n"

    written = environment if stack else environment + f"aws: {{region: {region}}}\n"

    with pytest.raises(SpecError) as caught:
        read(tmp_path, small(), written, region=region if stack else None)

    assert [problem.path for problem in caught.value.problems] == ["warehouses.0.delegation"]


def test_key_is_in_the_default_region(tmp_path: Path) -> None:
    key = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
    spec = small(storage={"main": {"backend": "aws", "bucket": "acme-lakehouse", "encryption": {"kms": key}}})
    environment = f"lakekeeper: {{endpoint: 'https://lakekeeper.example', principal_arn: '{ARN}'}}\n"

    read(tmp_path, spec, environment, region="us-east-1")
    with pytest.raises(SpecError, match="expected a key of the bucket's region, eu-west-1; found one of us-east-1"):
        read(tmp_path, spec, environment, region="eu-west-1")


DIGEST = f"registry.example/spark@sha256:{'0' * 64}"
ROLES = f"lakekeeper: {{endpoint: 'https://lakekeeper.example', principal_arn: '{ARN}'}}\naws: {{region: us-east-1}}\n"
UNIT = {"name": "cu", "runtime": "spark", "warehouse": "executions"}


@pytest.mark.parametrize(
    ("kubernetes", "unit", "path"),
    [
        ("{}", UNIT, "computing_units.0.image"),
        ("{}", UNIT | {"image": DIGEST}, None),
        ("{}", UNIT | {"image": "registry.example/spark:4.1"}, "computing_units.0.image"),
        ("{}", UNIT | {"image": "registry.example/spark:latest"}, "computing_units.0.image"),
        ("{}", UNIT | {"image": "registry.example/spark@sha256:abc"}, "computing_units.0.image"),
        (f"{{images: {{spark: '{DIGEST}'}}}}", UNIT, None),
        ("{images: {spark: 'spark:4'}}", UNIT, "environment here: kubernetes.images.spark"),
        ("{images: {spark: 'spark:4'}}", UNIT | {"image": DIGEST}, None),
        ("{}", UNIT | {"image": DIGEST, "idle_after": "30m"}, "computing_units.0.idle_after"),
        (f"{{maintenance_image: '{DIGEST}'}}", UNIT | {"image": DIGEST, "idle_after": "30m"}, None),
        ("{trial: true}", UNIT, None),
        ("{trial: true}", UNIT | {"image": "registry.example/spark:latest"}, None),
    ],
)
def test_images_have_a_digest_outside_trials(
    kubernetes: str, unit: dict[str, Any], path: str | None, tmp_path: Path
) -> None:
    environment = f"{ROLES}kubernetes: {{connect: {{tls_secret: units}}, {kubernetes[1:]}\n"
    if path is None:
        assert read(tmp_path, small(computing_units=[unit]), environment)[0].computing_units
    else:
        assert mistakes(tmp_path, small(computing_units=[unit]), environment) == [path]


@pytest.mark.parametrize(
    ("kubernetes", "refused"),
    [
        ("{}", True),
        ("{trial: true}", False),
        ("{connect: {tls_secret: units}}", False),
        ("{connect: {issuer: {name: platform}}}", False),
        ("{connect: {token_secret: {name: clients, key: token}}}", True),
    ],
)
def test_spark_connect_has_tls_outside_trials(kubernetes: str, *, refused: bool, tmp_path: Path) -> None:
    units = [UNIT | {"image": DIGEST}, UNIT | {"name": "second", "image": DIGEST}]
    spec, environment = small(computing_units=units), f"{ROLES}kubernetes: {kubernetes}\n"

    if refused:
        assert mistakes(tmp_path, spec, environment) == ["environment here: kubernetes.connect"]
    else:
        assert read(tmp_path, spec, environment)[0].computing_units


def test_certificate_has_one_source(tmp_path: Path) -> None:
    both = "{connect: {tls_secret: units, issuer: {name: platform}}}"

    assert mistakes(tmp_path, small(), f"{ROLES}kubernetes: {both}\n")


@pytest.mark.parametrize(
    ("kubernetes", "image", "path"),
    [
        ("{}", None, "maintenance.image"),
        ("{}", DIGEST, None),
        ("{maintenance_image: 'jobs:1'}", None, "environment here: kubernetes.maintenance_image"),
        (f"{{maintenance_image: '{DIGEST}'}}", None, None),
    ],
)
def test_maintenance_image_has_a_digest(kubernetes: str, image: str | None, path: str | None, tmp_path: Path) -> None:
    maintenance = {"schedule": "0 2 * * *"} | ({"image": image} if image else {})
    environment = f"{ROLES}kubernetes: {kubernetes}\n"
    if path is None:
        assert read(tmp_path, small(maintenance=maintenance), environment)[0].maintenance
    else:
        assert mistakes(tmp_path, small(maintenance=maintenance), environment) == [path]


def test_no_default_image_is_tagged_latest() -> None:
    assert not [image for image in TRIAL_IMAGES.values() if image.endswith(":latest") or ":" not in image]


def test_missing_spec_is_one_mistake(tmp_path: Path) -> None:
    assert mistakes(tmp_path, None, BARE) == [""]


def test_own_store_needs_neither_region_nor_role(tmp_path: Path) -> None:
    keys = {"access_key_id": "env:STORE_KEY", "secret_access_key": "env:STORE_SECRET"}
    store = {"backend": "s3", "bucket": "store", "endpoint": "http://store:9000/", "credential": keys}

    rules = "tenant_specs: {references: ['env:STORE_'], endpoints: ['http://store:9000']}\n"

    spec, environment = read(tmp_path, small(storage={"main": store}), BARE + rules)

    assert spec.name == "acme"
    assert environment.lakekeeper.endpoint == "https://lakekeeper.example"


def test_region_of_the_stack_is_enough(tmp_path: Path) -> None:
    environment = f"lakekeeper: {{endpoint: 'https://lakekeeper.example', principal_arn: '{ARN}'}}\n"

    assert read(tmp_path, small(), environment, region="eu-west-1")[0].name == "acme"


MAINTAINER = {"maintenance_role": {"principal_arn": "arn:aws-cn:iam::123456789012:role/jobs"}}
USER = "arn:aws:iam::123456789012:user/lakekeeper"


@pytest.mark.parametrize(
    ("changes", "environment", "path"),
    [
        ({"warehouses": [{"name": "w", "token_seconds": 3600}]}, ROLES, None),
        ({"warehouses": [{"name": "w", "token_seconds": 3601}]}, ROLES, "warehouses.0.token_seconds"),
        ({"warehouses": [{"name": "w", "token_seconds": 43200}]}, ROLES.replace(ARN, USER), None),
        ({"labels": {"team": "a"}}, f"{ROLES}  tags: {{team: b}}\n", "labels.team"),
        ({"labels": {"team": "b"}}, f"{ROLES}  tags: {{team: b}}\n", None),
        ({"labels": {f"l{number}": "x" for number in range(44)}}, f"{ROLES}  tags: {{team: b}}\n", None),
        ({"labels": {f"l{number}": "x" for number in range(45)}}, f"{ROLES}  tags: {{team: b}}\n", "labels"),
        ({"labels": {"Team": "b"}}, f"{ROLES}  tags: {{team: b}}\n", "labels.Team"),
        ({"labels": {"Team": "b", "team": "b"}}, ROLES, "labels.team"),
        ({"owner": "data\nplatform"}, ROLES, "owner"),
        ({"warehouses": [{"name": "w", **MAINTAINER}]}, ROLES, "warehouses.0.maintenance_role.principal_arn"),
        (
            {},
            f"{ROLES}  permissions_boundary: 'arn:aws-us-gov:iam::123456789012:policy/limit'\n",
            "environment here: aws.permissions_boundary",
        ),
        ({}, ROLES.replace("us-east-1", "us-gov-west-1"), "environment here: lakekeeper.principal_arn"),
    ],
)
def test_spec_fits_the_aws_settings_of_its_environment(
    changes: dict[str, Any], environment: str, path: str | None, tmp_path: Path
) -> None:
    environment = environment.replace("\naws: {region: us-east-1}", "\naws:\n  region: us-east-1")
    environment = environment.replace("\naws: {region: us-gov-west-1}", "\naws:\n  region: us-gov-west-1")
    if path is None:
        assert read(tmp_path, small(**changes), environment)
    else:
        assert path in mistakes(tmp_path, small(**changes), environment)


def test_principal_is_a_role_a_user_or_an_account(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="the ARN of a principal looks like"):
        read(tmp_path, small(), ROLES.replace(ARN, "arn:aws:s3:::lakekeeper"))


STARTS = (
    "database: {address: 'db.example:5432/texera_db', username: u, password: {name: texera, key: password}},"
    f" jwt_secret: {{name: texera, key: jwt}}, proxy_image: {DIGEST}"
)
"""Settings in `kubernetes.texera` that units of Texera need to start."""
TEXERA = {"name": "workflows", "runtime": "texera", "warehouses": "all", "image": DIGEST}


@pytest.mark.parametrize(
    ("kubernetes", "changes", "path"),
    [
        (f"{{quota: {{cpu: 1.1}}, texera: {{{STARTS}}}}}", {"size": "large"}, "environment here: kubernetes.quota.cpu"),
        (f"{{quota: {{cpu: 1.1}}, texera: {{{STARTS}}}}}", {}, None),
        (f"{{texera: {{catalog: postgres, {STARTS}}}}}", {}, "computing_units.0.texera.catalog"),
        (
            f"{{texera: {{postgres: {{address: 'db.example:5432/c', username: u}}, catalog: postgres, {STARTS}}}}}",
            {},
            None,
        ),
        (
            f"{{ca_bundle: {{file: missing.pem}}, texera: {{{STARTS}}}}}",
            {},
            "environment here: kubernetes.ca_bundle.file",
        ),
        ("{texera: {jwt_secret: {name: texera, key: jwt}}}", {}, "environment here: kubernetes.texera"),
        ("{trial: true}", {}, None),
        (
            f"{{texera: {{{STARTS.replace('db.example', '169.254.169.254')}}}}}",
            {},
            "environment here: kubernetes.texera.database.address",
        ),
        (
            f"{{texera: {{{STARTS}, egress: ['http://files.example', 'http://169.254.169.254']}}}}",
            {},
            "environment here: kubernetes.texera.egress.1",
        ),
    ],
)
def test_compute_that_the_cluster_cannot_give_is_refused(
    kubernetes: str, changes: dict[str, Any], path: str | None, tmp_path: Path
) -> None:
    spec, environment = small(computing_units=[TEXERA | changes]), f"{ROLES}kubernetes: {kubernetes}\n"

    if path is None:
        assert read(tmp_path, spec, environment)[0].computing_units
    else:
        assert mistakes(tmp_path, spec, environment) == [path]


def test_metadata_service_is_no_catalog_of_pods(tmp_path: Path) -> None:
    environment = ROLES.replace(
        "lakekeeper.example'", "lakekeeper.example', catalog_uri: 'https://169.254.169.254/catalog'"
    )
    environment += f"kubernetes: {{texera: {{{STARTS}}}}}\n"

    problem_paths = mistakes(tmp_path, small(computing_units=[TEXERA]), environment)

    assert problem_paths == ["environment here: lakekeeper.catalog_uri"]


@pytest.mark.parametrize(
    ("jobs_auth", "path"),
    [
        ("/var/run/secrets/lakekeeper/token", None),
        ("/etc/lakewright/token", "environment here: lakekeeper.jobs_auth.path"),
        ("/etc/lakewright/identity/token", "environment here: lakekeeper.jobs_auth.path"),
        ("/tmp/token", "environment here: lakekeeper.jobs_auth.path"),
        ("token", "environment here: lakekeeper.jobs_auth.path"),
    ],
)
def test_token_has_a_folder_of_its_own_in_pods(jobs_auth: str, path: str | None, tmp_path: Path) -> None:
    settings = f"jobs_auth: {{kind: token-file, path: {jobs_auth}}}"
    environment = ROLES.replace("lakekeeper.example'", f"lakekeeper.example', {settings}")
    environment += f"kubernetes: {{texera: {{{STARTS}}}}}\n"

    if path is None:
        assert read(tmp_path, small(computing_units=[TEXERA]), environment)[0].computing_units
    else:
        assert mistakes(tmp_path, small(computing_units=[TEXERA]), environment) == [path]


@pytest.mark.parametrize(
    ("catalog_uri", "variables", "path"),
    [
        ("https://lakekeeper.example/a+b/catalog", "{JAVA_OPTS: -Xmx4g}", None),
        ("https://10.0.0.5/catalog", "{}", "lakekeeper.catalog_uri"),
        ("https://lakekeeper.example/a;b/catalog", "{}", "lakekeeper.catalog_uri"),
        (
            "https://lakekeeper.example/catalog",
            "{STORAGE_ICEBERG_CATALOG_REST_URI: 'https://lakekeeper.example/catalog'}",
            "kubernetes.texera.variables.STORAGE_ICEBERG_CATALOG_REST_URI",
        ),
    ],
)
def test_units_of_texera_use_the_catalog_by_their_proxy(
    catalog_uri: str, variables: str, path: str | None, tmp_path: Path
) -> None:
    settings = f"catalog_uri: '{catalog_uri}', jobs_auth: {{kind: token-file, path: /run/lakekeeper/token}}"
    environment = ROLES.replace("lakekeeper.example'", f"lakekeeper.example', {settings}")
    environment += f"kubernetes: {{texera: {{{STARTS}, variables: {variables}}}}}\n"

    if path is None:
        assert read(tmp_path, small(computing_units=[TEXERA]), environment)[0].computing_units
    else:
        assert mistakes(tmp_path, small(computing_units=[TEXERA]), environment) == [f"environment here: {path}"]


def test_authorities_are_outside_the_folder_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(Path(certifi.where()).read_bytes())
    environment = ROLES.replace("lakekeeper.example'", "lakekeeper.example', jobs_ca_bundle: /etc/lakewright/ca.pem")
    environment += f"kubernetes: {{ca_bundle: {{file: {tmp_path / 'ca.pem'}}}, texera: {{{STARTS}}}}}\n"

    problem_paths = mistakes(tmp_path, small(computing_units=[TEXERA]), environment)

    assert problem_paths == ["environment here: lakekeeper.jobs_ca_bundle"]


@pytest.mark.parametrize(
    ("jobs_auth", "texera", "path"),
    [
        ("{kind: token-file, path: /run/lakekeeper/token}", STARTS, None),
        ("{kind: token, token: 'file:/run/lakekeeper/token'}", STARTS, None),
        ("{kind: none}", STARTS.partition(", proxy_image")[0], None),
        (
            "{kind: token-file, path: /run/lakekeeper/token}",
            STARTS.partition(", proxy_image")[0],
            "kubernetes.texera.proxy_image",
        ),
        (
            "{kind: token-file, path: /run/lakekeeper/token}",
            STARTS.partition("proxy_image")[0] + "proxy_image: nginx:latest",
            "kubernetes.texera.proxy_image",
        ),
        ("{kind: token, token: 'env:TOKEN'}", STARTS, "lakekeeper.jobs_auth"),
        (
            "{kind: client-credentials, token_url: 'https://idp.example/t', client_id: 'jobs-{tenant}',"
            " client_secret: 'file:/run/client/secret'}, jobs_subject: '{client_id}'",
            STARTS,
            "lakekeeper.jobs_auth",
        ),
    ],
)
def test_proxy_of_texera_needs_a_token_in_a_file(jobs_auth: str, texera: str, path: str | None, tmp_path: Path) -> None:
    environment = ROLES.replace("lakekeeper.example'", f"lakekeeper.example', jobs_auth: {jobs_auth}")
    environment += f"kubernetes: {{texera: {{{texera}}}}}\n"

    if path is None:
        assert read(tmp_path, small(computing_units=[TEXERA]), environment)[0].computing_units
    else:
        assert mistakes(tmp_path, small(computing_units=[TEXERA]), environment) == [f"environment here: {path}"]
