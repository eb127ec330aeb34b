"""Registration of units at a server that responds like Texera's computing-unit-managing-service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lakewright.kubernetes.texera_registration import RegisteredUnit, TexeraError, TexeraUnits

from tests.texera_server import TexeraServer, serve_texera

UNIT = {"name": "workflows", "unitType": "local", "uri": "workflows.tenant-acme.svc:8085", "cpuLimit": "2"}


@pytest.fixture
def texera() -> Iterator[TexeraServer]:
    with serve_texera() as server:
        yield server


def test_unit_is_registered_once(texera: TexeraServer) -> None:
    first = TexeraUnits(texera.url, "token").register(UNIT)
    second = TexeraUnits(texera.url, "token").register(UNIT)

    assert first == RegisteredUnit("workflows", UNIT["uri"], 1, is_new=True)
    assert second == RegisteredUnit("workflows", UNIT["uri"], 1, is_new=False)
    assert texera.created == [UNIT]


def test_shared_unit_is_not_taken_for_the_users_own(texera: TexeraServer) -> None:
    texera.shared = {"name": "workflows", "uri": UNIT["uri"]}

    assert TexeraUnits(texera.url, "token").register(UNIT).is_new is True


def test_unit_at_another_address_is_registered(texera: TexeraServer) -> None:
    texera_units = TexeraUnits(texera.url, "token")
    texera_units.register(UNIT)

    assert texera_units.register(UNIT | {"uri": "elsewhere:8085"}).cuid == 2


def test_refusal_of_local_units_names_the_setting(texera: TexeraServer) -> None:
    texera.local_units = False

    with pytest.raises(TexeraError, match="Set COMPUTING_UNIT_LOCAL_ENABLED=true"):
        TexeraUnits(texera.url, "token").register(UNIT)


@pytest.mark.parametrize(
    ("token", "message"), [("expired", "does not accept the token"), ("restricted", "the role REGULAR or ADMIN")]
)
def test_refused_user_is_explained_without_the_token(texera: TexeraServer, token: str, message: str) -> None:
    with pytest.raises(TexeraError, match=message) as error:
        TexeraUnits(texera.url, token).register(UNIT)

    assert token not in str(error.value).replace(message, "")


def test_another_server_is_no_texera(texera: TexeraServer) -> None:
    texera.page = "<html>"

    with pytest.raises(TexeraError, match="Is this Texera's address"):
        TexeraUnits(texera.url, "token").register(UNIT)


def test_token_is_not_sent_without_tls() -> None:
    with pytest.raises(TexeraError, match="expected `https://`"):
        TexeraUnits("http://texera.example", "token")


def test_unreachable_server_is_named() -> None:
    with pytest.raises(TexeraError, match=r"http://127\.0\.0\.1:1/api/computing-unit does not respond"):
        TexeraUnits("http://127.0.0.1:1", "token").register(UNIT)
