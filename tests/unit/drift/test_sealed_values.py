"""Secrets of a state in comparisons and reports."""

from lakewright.drift.objects.sealed_values import (
    REDACTED,
    decrypt_secrets,
    find_secret_paths,
    mask_secrets,
    seal_secrets,
)
from lakewright_engine.model.resources import ResourceReference, SealedSecret, SecretValue


def test_sealed_properties_decrypt_nothing() -> None:
    opened: list[str] = []

    def unseal() -> str:
        opened.append("key")
        return "hidden"

    properties = {"credential": {"type": "x", "external_id": SealedSecret(unseal)}, "names": [SecretValue("a"), "b"]}

    closed, has_secrets = seal_secrets(properties)
    assert (opened, has_secrets) == ([], True)
    assert "hidden" not in str(closed)
    assert closed["names"][1] == "b"
    assert decrypt_secrets(properties)["credential"]["external_id"] == "hidden"
    assert opened == ["key"]


def test_references_become_ids() -> None:
    of = ResourceReference("urn:y", "id-2")

    assert seal_secrets({"of": of}) == ({"of": "id-2"}, False)
    assert seal_secrets({"on": ResourceReference("urn:x", SecretValue("id-1")), "of": of}) == (
        {"on": "sealed-secret", "of": "id-2"},
        True,
    )


def test_values_at_and_around_secrets_are_masked() -> None:
    secrets = find_secret_paths({"credential": {"id": SecretValue("a"), "type": "x"}, "list": [1, SecretValue("b")]})

    assert secrets == [("credential", "id"), ("list", "1")]
    assert mask_secrets("a", ("credential", "id"), secrets) == REDACTED
    assert mask_secrets({"id": "a", "type": "x"}, ("credential",), secrets) == {"id": REDACTED, "type": "x"}
    assert mask_secrets([1, "b"], ("list",), secrets) == [1, REDACTED]
    assert mask_secrets("c", ("name",), secrets) == "c"
