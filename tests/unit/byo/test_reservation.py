"""Which external ID a storage uses: the spec's, the reserved one, the one that an earlier `up` made, or a new one."""

from __future__ import annotations

import uuid
from typing import Any

from lakewright.byo.reservation import reserve_external_id
from lakewright.storage.existing import ExistingStorage


class FakeSettings:
    """A stack's configuration in memory."""

    def __init__(self, **values: str) -> None:
        self.values = values
        self.secrets: set[str] = set()

    def get(self, key: str) -> str | None:
        return self.values.get(key)

    def set(self, key: str, value: str, *, secret: bool) -> None:
        self.values[key] = value
        if secret:
            self.secrets.add(key)


def storage(**fields: Any) -> ExistingStorage:
    return ExistingStorage.model_validate(
        {"backend": "existing", "bucket": "acme-own", "region": "us-west-2"}
        | {"role_arn": "arn:aws:iam::123456789012:role/lakewright/own"}
        | fields
    )


def test_new_external_id_is_random_and_kept_as_secret() -> None:
    settings = FakeSettings()

    reserved = reserve_external_id("own", storage(), settings, {}, ["executions"])

    assert reserved.is_new
    assert uuid.UUID(reserved.external_id).version == 4
    assert settings.values == {"byo_external_id_own": reserved.external_id}
    assert settings.secrets == {"byo_external_id_own"}


def test_second_reservation_is_the_first() -> None:
    settings = FakeSettings()
    first = reserve_external_id("own", storage(), settings, {}, ["executions"])

    second = reserve_external_id("own", storage(), settings, {}, ["executions"])

    assert (second.external_id, second.is_new) == (first.external_id, False)


def test_external_id_of_an_earlier_up_is_kept() -> None:
    settings = FakeSettings()

    reserved = reserve_external_id("own", storage(), settings, {"executions": "made-by-up"}, ["executions"])

    assert (reserved.external_id, reserved.is_new) == ("made-by-up", False)
    assert settings.values == {"byo_external_id_own": "made-by-up"}


def test_warehouses_with_another_external_id_are_named() -> None:
    ids_by_warehouse = {"executions": "first", "reports": "second"}

    reserved = reserve_external_id("own", storage(), FakeSettings(), ids_by_warehouse, ["executions", "reports"])

    assert (reserved.external_id, reserved.warehouses_with_other_id) == ("first", ("reports",))


def test_external_id_of_the_spec_is_used_as_it_is() -> None:
    settings = FakeSettings()

    reserved = reserve_external_id("own", storage(external_id="chosen-by-acme"), settings, {}, ["executions"])

    assert (reserved.external_id, settings.values) == ("chosen-by-acme", {})


def test_key_of_the_spec_is_filled() -> None:
    settings = FakeSettings()

    reserved = reserve_external_id("own", storage(external_id="config:theirs"), settings, {}, ["executions"])

    assert settings.values == {"theirs": reserved.external_id}
