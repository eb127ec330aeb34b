"""The kinds of directories. A new kind is a file next to this file and an entry in `DirectorySettings`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from lakewright.directories.entra import EntraSettings
from lakewright.directories.keycloak import KeycloakSettings

DirectorySettings = Annotated[EntraSettings | KeycloakSettings, Field(discriminator="kind")]
