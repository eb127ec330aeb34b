"""Sizes in the notation of a spec."""

import pytest
from lakewright.validation.quantity import parse_bytes, parse_millicores


@pytest.mark.parametrize(
    ("text", "amount"),
    [("1", 1), ("1k", 1000), ("1Ki", 1024), ("1.5Gi", 1610612736), ("512MiB", 536870912), ("2G", 2 * 10**9)],
)
def test_bytes(text: str, amount: int) -> None:
    assert parse_bytes(text) == amount


@pytest.mark.parametrize(("text", "amount"), [("2", 2000), ("0.5", 500), ("250m", 250)])
def test_millicores(text: str, amount: int) -> None:
    assert parse_millicores(text) == amount


@pytest.mark.parametrize("text", ["", "0", "-1Gi", "8 gigabytes", "Gi", "1e3"])
def test_invalid_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["", "0", "-1", "2 cores", "1.2345"])
def test_invalid_cores(text: str) -> None:
    with pytest.raises(ValueError, match="expected cores"):
        parse_millicores(text)
