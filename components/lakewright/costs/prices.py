"""Prices: what a unit of storage, requests, compute and maintenance costs. Read from a YAML file."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator, Field, ValidationError

from lakewright.validation.problems import Problem, SpecError, list_problems
from lakewright.validation.quantity import text_of_number
from lakewright.validation.strict_model import StrictModel
from lakewright.validation.yaml_text import load_yaml

Price = Annotated[Decimal, BeforeValidator(text_of_number), Field(ge=0, allow_inf_nan=False)]


class Prices(StrictModel):
    """Prices of units in one currency. A unit without a price has no cost."""

    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    """ISO 4217 code, such as EUR."""
    storage_gb_month: Price | None = None
    """Price of 10^9 bytes in a calendar month."""
    requests_1000: Price | None = None
    """Price of 1000 requests to the store."""
    cu_hour: Price | None = None
    """Price of an hour of a computing unit."""
    maintenance_hour: Price | None = None
    """Price of an hour of maintenance jobs."""
    billing_account: str = "lakewright"
    """Account that pays, column BillingAccountId."""
    provider: str = "Lakewright"
    """Team that provides the service, columns ProviderName, PublisherName and InvoiceIssuerName."""


def read_prices(file: Path) -> Prices:
    """Read a file of prices.

    Raises:
        SpecError: The file cannot be read, or has mistakes.
    """
    document: Any = None
    try:
        document = load_yaml(file.read_text(encoding="utf-8"))
        return Prices.model_validate(document)
    except ValidationError as error:
        raise SpecError(str(file), list_problems(error, document)) from None
    except OSError as error:
        raise SpecError(str(file), [Problem("", f"expected a file of prices: {error.strerror}")]) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        message = str(error).splitlines()[0]
        raise SpecError(str(file), [Problem("", f"expected a file of prices in YAML: {message}")]) from None
