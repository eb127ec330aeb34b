"""A Lakekeeper warehouse of a tenant, and the namespaces in it."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from lakewright.names.namespace_presets import PRESETS
from lakewright.names.principal import Principal
from lakewright.names.types import Deletion, FormatVersion, NamespacePath, S3KeyPrefix
from lakewright.validation.strict_model import StrictModel


def _catalog_name(name: str) -> str:
    # Texera's rule. It keeps a warehouse usable as a catalog's name in Spark and as a part of a role's name.
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", name):
        raise ValueError("expected up to 40 letters, digits, `-` and `_`, the first a letter or digit")
    return name


CatalogName = Annotated[str, AfterValidator(_catalog_name)]
"""Name of a warehouse; Spark and PyIceberg know the catalog by it."""


class NamespacePreset(StrictModel):
    """The namespaces of a known application, and further ones."""

    preset: Literal["texera"]
    also: list[NamespacePath] = []


def _form(value: object) -> str:
    return "tag:preset" if isinstance(value, dict | NamespacePreset) else "tag:list"


Namespaces = Annotated[
    Annotated[NamespacePreset, Tag("tag:preset")] | Annotated[list[NamespacePath], Tag("tag:list")],
    Discriminator(_form),
]


class WarehouseSpec(StrictModel):
    """One warehouse: a prefix of a storage, with a role that reaches that prefix alone."""

    name: CatalogName
    renamed_from: CatalogName | None = None
    """The name that it had in this spec: the warehouse is renamed in place. Key prefix and role stay as they are."""
    storage: str | None = None
    """Name of the storage; needed when there are several."""
    owner: Principal | None = None
    """Whose runs write here: `user:IDP~SUBJECT` or `role:NAME`, and those to whom `grants` give both `create` and
    `modify` on the warehouse or the project. Default: every run of the tenant."""
    key_prefix: Annotated[S3KeyPrefix, Field(min_length=1)] | None = None
    """Default: TENANT/WAREHOUSE, with the warehouse's first name."""
    namespaces: Namespaces = []
    soft_delete_days: Annotated[int, Field(ge=1, le=365)] | None = None
    """How long a dropped table can be brought back; without it, dropping is final."""
    deletion: Deletion = "protect"
    """What destroying does while there are tables: `protect` refuses, `retain` keeps everything, `purge` removes it."""
    adopt: bool = False
    """Take over a warehouse of this name, its namespaces and its role, although this stack did not make them."""
    protected: bool = False
    """Lakekeeper's own protection: nobody deletes the warehouse without force."""
    format_versions: Annotated[list[FormatVersion], Field(min_length=1)] | None = None
    """Versions of Iceberg's table format that tables may have. Default: all that the server knows."""
    delegation: Literal["vended", "remote-signing"] = "vended"
    """How clients reach S3: with short-lived credentials for one table, or with each request signed by the catalog."""
    session_tags: dict[str, str] = {}
    """Session tags of the catalog's role sessions, for policies of the tenant's own."""

    @property
    def namespace_paths(self) -> list[str]:
        """Every declared namespace and the parents it needs, parents first, none twice."""
        declared = self.namespaces
        paths = [*PRESETS[declared.preset], *declared.also] if isinstance(declared, NamespacePreset) else declared
        with_parents = (
            ".".join(levels[:depth])
            for levels in (path.split(".") for path in paths)
            for depth in range(1, len(levels) + 1)
        )
        return list(dict.fromkeys(with_parents))
