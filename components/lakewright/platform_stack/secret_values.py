"""Secrets of the platform: sources are resolved before anything is made; generated ones are minted once."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping

import pulumi

from lakewright.credentials.random_secret import RandomSecret
from lakewright.credentials.references import ConfigLookup, UnresolvedCredentialError, resolve
from lakewright.platform_stack.encryption_key import mistake_of_key
from lakewright.platform_stack.settings.platform import PlatformSpec
from lakewright.platform_stack.settings.server_environment import ServerEnvironment, kafka_sources
from lakewright.platform_stack.settings.types import in_cluster_secret, is_minted
from lakewright.platform_stack.settings.variables import PREFIX
from lakewright.validation.problems import Problem

ENCRYPTION_KEY = f"{PREFIX}PG_ENCRYPTION_KEY"


def sources_of(spec: PlatformSpec, environment: ServerEnvironment) -> dict[str, str]:
    """Return the source of each secret, by variable, file or setting."""
    found = {**environment.secrets, **environment.files}
    found |= {f"kafka {key}": source for key, source in kafka_sources(spec).items()}
    openfga = spec.server.authorization.openfga
    if openfga and openfga.server and openfga.server.database_uri:
        found["openfga database_uri"] = openfga.server.database_uri
    if spec.gateway.tls and spec.gateway.tls.key:
        found["gateway key"] = spec.gateway.tls.key
    return found


def resolve_sources(sources: Mapping[str, str], config: ConfigLookup) -> tuple[dict[str, str], list[Problem]]:
    """Return the secrets of the sources that are references, by source, and the problems."""
    values: dict[str, str] = {}
    problems: list[Problem] = []
    for user, source in sources.items():
        if is_minted(source) or in_cluster_secret(source) or source in values:
            continue
        try:
            values[source] = resolve(source, config)
        except UnresolvedCredentialError as error:
            problems.append(Problem(user, str(error)))
    key = sources.get(ENCRYPTION_KEY, "")
    if key in values and (reason := mistake_of_key(values[key])):
        problems.append(Problem("database.secrets.encryption_key", reason))
    return values, problems


class SecretValues:
    """The secrets of one stack as outputs."""

    def __init__(self, name: str, values: Mapping[str, str], *, opts: pulumi.ResourceOptions, protect: bool) -> None:
        """Use resolved values by source. `protect` keeps generated secrets from being deleted."""
        self._name = name
        self._values = values
        self._opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(protect=protect))
        self._minted: dict[str, pulumi.Output[str]] = {}

    def value(self, user: str, source: str) -> pulumi.Output[str]:
        """Return the secret of a source that is not in the cluster. Generated secrets differ by user."""
        return self.minted(user) if is_minted(source) else pulumi.Output.secret(self._values[source])

    def minted(self, user: str) -> pulumi.Output[str]:
        """Return the generated secret of a user, minted at the first call."""
        if user not in self._minted:
            name = f"{self._name}-{user.removeprefix(PREFIX).lower().replace('_', '-')}"
            self._minted[user] = RandomSecret(name, opts=self._opts).value
        return self._minted[user]

    def digest(self, values: Mapping[str, pulumi.Input[str]]) -> pulumi.Output[str]:
        """Return a hash that changes with the secrets and reveals none: its key is itself a secret."""
        salt = self.minted("secrets-hash")

        def compute(found: dict[str, str]) -> str:
            key = found.pop("\0salt").encode()
            text = "\0".join(f"{name}\0{value}" for name, value in sorted(found.items()))
            return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:16]

        inputs: dict[str, pulumi.Input[str]] = {**values, "\0salt": salt}
        return pulumi.Output.unsecret(pulumi.Output.all(**inputs).apply(compute))


def encoded(
    values: Mapping[str, pulumi.Output[str]], change: Callable[[str], str] | None = None
) -> pulumi.Output[dict[str, str]]:
    """Return the `data` of a Secret."""

    def encode(found: dict[str, str]) -> dict[str, str]:
        texts = {name: change(value) if change else value for name, value in found.items()}
        return {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}

    return pulumi.Output.secret(pulumi.Output.all(**values).apply(encode))
