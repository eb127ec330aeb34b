"""Secrets of the platform: sources are resolved before anything is made; generated secrets are minted once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping

import pulumi

from lakewright.credentials.random_secret import RandomSecret
from lakewright.credentials.references import ConfigLookup, UnresolvedCredentialError, resolve
from lakewright.platform_stack.settings.platform import PlatformSpec
from lakewright.platform_stack.settings.server_environment import ServerEnvironment, list_kafka_sources
from lakewright.platform_stack.settings.types import is_minted, parse_cluster_secret
from lakewright.platform_stack.settings.variables import PREFIX
from lakewright.validation.problems import Problem

ENCRYPTION_KEY = f"{PREFIX}PG_ENCRYPTION_KEY"
_SSL_MODE = re.compile(r"[?&\s]sslmode=([a-z-]+)")
_PLAIN_TEXT_MODES = ("disable", "allow", "prefer")


def list_sources(spec: PlatformSpec, environment: ServerEnvironment) -> dict[str, str]:
    """Return the source of each secret, by variable, file or setting."""
    sources = {**environment.secrets, **environment.files}
    sources |= {f"kafka {key}": source for key, source in list_kafka_sources(spec).items()}
    openfga = spec.server.authorization.openfga
    if openfga and openfga.server and openfga.server.database_uri:
        sources["openfga database_uri"] = openfga.server.database_uri
    if spec.gateway.tls and spec.gateway.tls.key:
        sources["gateway key"] = spec.gateway.tls.key
    return sources


def resolve_sources(sources: Mapping[str, str], config: ConfigLookup) -> tuple[dict[str, str], list[Problem]]:
    """Return the secrets of the sources that are references, by source, and the problems."""
    values: dict[str, str] = {}
    problems: list[Problem] = []
    for user, source in sources.items():
        if is_minted(source) or parse_cluster_secret(source) or source in values:
            continue
        try:
            values[source] = resolve(source, config)
        except UnresolvedCredentialError as error:
            problems.append(Problem(user, str(error)))
    key = sources.get(ENCRYPTION_KEY, "")
    if key in values and (reason := find_key_mistake(values[key])):
        problems.append(Problem("database.secrets.encryption_key", reason))
    return values, problems


def find_openfga_database_problems(spec: PlatformSpec, values: Mapping[str, str]) -> list[Problem]:
    """Return the problems of the address of OpenFGA's database, which is secret and read when the program runs.

    Args:
        spec: The spec of the platform.
        values: Resolved secrets by source.
    """
    openfga = spec.server.authorization.openfga
    uri = values.get((openfga.server.database_uri if openfga and openfga.server else None) or "")
    if uri is None or spec.trial:
        return []
    mode = _SSL_MODE.search(uri)
    if mode and mode[1] not in _PLAIN_TEXT_MODES:
        return []
    reason = (
        "is for trials only: without `sslmode` or with `disable`, `allow` or `prefer`, the connection may be in plain"
        " text. End the address in `?sslmode=verify-full`, or set `trial: true`"
    )
    return [Problem("server.authorization.openfga.server.database_uri", reason)]


class SecretValues:
    """The secrets of one stack as outputs."""

    def __init__(self, name: str, values: Mapping[str, str], *, opts: pulumi.ResourceOptions, protect: bool) -> None:
        """Use resolved values by source. `protect` keeps generated secrets from being deleted."""
        self._name = name
        self._values = values
        self._opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(protect=protect))
        self._minted: dict[str, pulumi.Output[str]] = {}

    def find_secret(self, user: str, source: str) -> pulumi.Output[str]:
        """Return the secret of a source that is not in the cluster. Generated secrets differ by user."""
        return self.mint_once(user) if is_minted(source) else pulumi.Output.secret(self._values[source])

    def mint_once(self, user: str) -> pulumi.Output[str]:
        """Return the generated secret of a user, minted at the first call."""
        if user not in self._minted:
            name = f"{self._name}-{user.removeprefix(PREFIX).lower().replace('_', '-')}"
            self._minted[user] = RandomSecret(name, opts=self._opts).value
        return self._minted[user]

    def compute_digest(self, values: Mapping[str, pulumi.Input[str]]) -> pulumi.Output[str]:
        """Return a hash that changes with the secrets and reveals none: its key is itself a secret."""
        salt = self.mint_once("secrets-hash")

        def compute(secrets: dict[str, str]) -> str:
            key = secrets.pop("\0salt").encode()
            text = "\0".join(f"{name}\0{value}" for name, value in sorted(secrets.items()))
            return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:16]

        inputs: dict[str, pulumi.Input[str]] = {**values, "\0salt": salt}
        return pulumi.Output.unsecret(pulumi.Output.all(**inputs).apply(compute))


def encode_secret_data(
    values: Mapping[str, pulumi.Output[str]], transform: Callable[[str], str] | None = None
) -> pulumi.Output[dict[str, str]]:
    """Return the `data` of a Secret."""

    def encode(secrets: dict[str, str]) -> dict[str, str]:
        texts = {name: transform(value) if transform else value for name, value in secrets.items()}
        return {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}

    return pulumi.Output.secret(pulumi.Output.all(**values).apply(encode))


MIN_BYTES = 32
_KNOWN = frozenset({"<this is unsafe, please set a proper key>", "changeme", "secret", "password"})
_MIN_SAMPLE_BITS = 150
"""Bits of the text by the frequencies of its characters. Random hexadecimal of 32 bytes has about 245, base64 210."""


def find_key_mistake(key: str) -> str | None:
    """Return why a key is refused; None if it is accepted. The message never repeats the key."""
    if key.strip().casefold() in _KNOWN:
        return "is a known example key"
    bits = len(key) * _estimate_bits_per_character(key)
    if bits < MIN_BYTES * 8:
        return (
            f"has room for {int(bits // 8)} random bytes; expected at least {MIN_BYTES}, such as the output of"
            " `openssl rand -base64 48`, or `generated`"
        )
    if _estimate_sample_bits(key) < _MIN_SAMPLE_BITS or re.fullmatch(r"(.{1,24}?)\1+.{0,24}", key):
        return f"is not random: it repeats itself; expected at least {MIN_BYTES} random bytes, or `generated`"
    return None


def _estimate_bits_per_character(key: str) -> float:
    if re.fullmatch(r"[0-9]*", key):
        return math.log2(10)
    if re.fullmatch(r"[0-9a-fA-F]*", key):
        return 4
    return 6


def _estimate_sample_bits(key: str) -> float:
    counts = Counter(key)
    return -sum(count * math.log2(count / len(key)) for count in counts.values())
