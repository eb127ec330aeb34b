"""The objects of AWS accounts that count, and the regions in which buckets are searched for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError
from lakewright.discovery.listing.managed_objects import list_bucket_regions
from lakewright.discovery.survey import account_objects
from lakewright.discovery.survey.account_objects import list_account_objects
from lakewright.environment.environment import AwsAccount
from lakewright_engine.model.resources import ResourceState

REGIONS = {"eu-central-1": ["home"], "us-west-2": ["away"], "us-east-2": ["unsearched"]}


class Session:
    """An account with a role, and with buckets by region; keys are invalid in other regions."""

    def __init__(self, region: str | None, failures: Mapping[str, Exception]) -> None:
        self.region_name = region
        self.failures = failures

    def client(self, service: str, *, region_name: str | None, **_options: Any) -> Client:
        return Client(service, region_name or self.region_name or "", self.failures)


class Client:
    def __init__(self, service: str, region: str, failures: Mapping[str, Exception]) -> None:
        self.service, self.region, self.failures = service, region, failures

    def get_paginator(self, _operation: str) -> Client:
        return self

    def paginate(self, **_options: Any) -> list[dict[str, Any]]:
        if failure := self.failures.get(self.service) or self.failures.get(self.region):
            raise failure
        if self.service == "iam":
            return [{"Roles": [{"RoleName": "lakewright.acme.main"}]}]
        if self.region not in REGIONS:
            raise refuse("UnrecognizedClientException")
        resources = [{"ResourceARN": f"arn:aws:s3:::{name}"} for name in REGIONS[self.region]]
        return [{"ResourceTagMappingList": resources}]


def refuse(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "refused"}}, "GetResources")


def survey(
    monkeypatch: pytest.MonkeyPatch,
    *regions: str,
    default: str | None = "eu-central-1",
    failures: Mapping[str, Exception] | None = None,
) -> tuple[list[str], list[str]]:
    """Return the names of the objects, and the problems."""
    session, problems = Session(default, failures or {}), list[str]()
    monkeypatch.setattr(account_objects, "open_aws_session", lambda *_settings: session)
    objects = list_account_objects(AwsAccount(), regions, problems)
    return [entry.name for entry in objects], problems


def test_buckets_of_all_regions_of_stacks_count(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names, problems = survey(monkeypatch, "us-west-2")

    assert names == ["lakewright.acme.main", "home", "away"]
    assert problems == []
    assert capsys.readouterr().err == "note: AWS: buckets were searched for in eu-central-1, us-west-2 only\n"


def test_region_of_another_account_is_no_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names, problems = survey(monkeypatch, "me-south-1")

    assert names == ["lakewright.acme.main", "home"]
    assert problems == []
    assert capsys.readouterr().err.endswith("in eu-central-1 only\n")


def test_region_that_cannot_be_listed_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    names, problems = survey(monkeypatch, "us-west-2", failures={"us-west-2": refuse("AccessDeniedException")})

    assert names == ["lakewright.acme.main", "home"]
    (problem,) = problems
    assert problem.startswith("buckets in us-west-2 at AWS could not be listed: ")


def test_account_without_a_region_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    names, problems = survey(monkeypatch, default=None)

    assert names == ["lakewright.acme.main"]
    assert problems == [
        "buckets at AWS could not be listed: no region is set. Set `aws.region` of the environment",
    ]


def test_environment_without_aws_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    assert survey(monkeypatch, default=None, failures={"iam": NoCredentialsError()}) == ([], [])


def test_regions_of_buckets_are_in_states() -> None:
    states = [
        ResourceState("a", "aws:s3/bucket:Bucket", custom=True, outputs={"region": "eu-west-1"}),
        ResourceState("b", "aws:s3/bucketV2:BucketV2", custom=True, outputs={"bucketRegion": "us-west-2"}),
        ResourceState("c", "aws:s3/bucket:Bucket", custom=True),
        ResourceState("d", "aws:kms/key:Key", custom=True, outputs={"region": "us-east-1"}),
    ]

    assert list_bucket_regions(states) == {"eu-west-1", "us-west-2"}
