"""The registry of storage backends."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from lakewright.credentials.references import Reference
from lakewright.spec import SpecError, parse_spec
from lakewright.storage.registry import BACKENDS, CONFIG_KEY_PATHS, ENDPOINT_PATHS, REFERENCE_PATHS
from lakewright.storage.restricted_fields import TenantEndpoint, endpoint_paths, reference_paths
from lakewright.tenant.storage import PROVISIONERS
from lakewright.validation.strict_model import StrictModel
from pydantic import Field


def test_backends_by_name() -> None:
    assert list(BACKENDS) == ["aws", "s3", "existing", "adls", "gcs"]
    assert all(model.summary for model in BACKENDS.values())


def test_made_buckets_have_provisioners() -> None:
    assert {name for name, model in BACKENDS.items() if model.can_make_bucket} == set(PROVISIONERS)


@pytest.mark.parametrize("storage", [{"backend": "hdfs", "bucket": "lake"}, {"bucket": "lake"}])
def test_unknown_backend_is_refused_by_name(storage: dict[str, str]) -> None:
    document = {"version": 1, "name": "acme", "owner": "tests", "environment": "dev", "storage": {"main": storage}}
    with pytest.raises(SpecError) as refused:
        parse_spec(document | {"warehouses": [{"name": "main"}]}, "spec")
    (problem,) = refused.value.problems
    expected = "expected 'aws', 's3', 'existing', 'adls' or 'gcs'"
    assert (problem.path, problem.expected) == ("storage.main.backend", expected)
    assert problem.found == (repr(storage["backend"]) if "backend" in storage else "")


def test_restricted_fields_of_backends() -> None:
    """The environment's rules cover each field that names an endpoint or a secret."""
    assert {"endpoint", "sts_endpoint"} == ENDPOINT_PATHS
    keys = {
        f"{name}.{key}" for name in ("credential", "admin_credential") for key in ("access_key_id", "secret_access_key")
    }
    other_keys = ("token", "account_key", "client_secret", "service_account_key")
    assert keys | {f"credential.{key}" for key in other_keys} == REFERENCE_PATHS
    assert {"external_id"} == CONFIG_KEY_PATHS


def test_restricted_fields_are_found_in_any_annotation() -> None:
    class StoreKeys(StrictModel):
        token: Reference | None = None

    class Toy(StrictModel):
        backend: Literal["toy"]
        keys: StoreKeys | None = None
        proxy: TenantEndpoint | None = None
        secret: Annotated[Reference, Field(description="of the store")]

    assert list(reference_paths(Toy)) == ["keys.token", "secret"]
    assert list(endpoint_paths(Toy)) == ["proxy"]
