"""Settings of change events: NATS, Kafka and the log."""

from __future__ import annotations

import re
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, model_validator

from lakewright.platform_stack.settings.types import SecretSource, Text, check_reachable
from lakewright.platform_stack.settings.variables import EnvPrefix, EnvVar
from lakewright.validation.strict_model import StrictModel

_KAFKA_SECRETS = frozenset(
    {"sasl.password", "sasl.oauthbearer.client.secret", "ssl.key.password", "ssl.keystore.password"}
)
_HOST_CHARACTERS = re.compile(r"[A-Za-z0-9._:\[\]-]+")
_KAFKA_PROTOCOL = re.compile(r"^[A-Za-z_]+://")


def _is_host_and_port(text: str) -> bool:
    """Return whether a text is HOST or HOST:PORT, with a port from 1 to 65535."""
    try:
        parts = urlsplit(f"//{text}")
        return bool(_HOST_CHARACTERS.fullmatch(text) and parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _check_nats_address(value: str) -> str:
    if "@" in value:
        # The value has a credential, so the message does not repeat it.
        raise ValueError(
            "expected `nats://HOST[:PORT]` or `tls://HOST[:PORT]` without credentials. Name `user` and `password`,"
            " `token` or `credentials_file`, by reference and not the secret itself"
        )
    scheme, _, address = value.partition("://")
    if scheme not in {"nats", "tls"} or not _is_host_and_port(address):
        raise ValueError("expected one address, `nats://HOST[:PORT]` or `tls://HOST[:PORT]`")
    check_reachable(value)
    return value


NatsAddress = Annotated[str, AfterValidator(_check_nats_address)]
"""`nats://HOST[:PORT]` or `tls://HOST[:PORT]`, without credentials."""


class NatsSettings(StrictModel):
    """Change events to NATS."""

    address: Annotated[NatsAddress, EnvVar("NATS_ADDRESS")]
    """`nats://HOST[:PORT]` or `tls://HOST[:PORT]`, without credentials. The default port is 4222."""
    topic: Annotated[Text, EnvVar("NATS_TOPIC")]
    user: Annotated[Text | None, EnvVar("NATS_USER")] = None
    password: Annotated[SecretSource | None, EnvVar("NATS_PASSWORD", secret=True)] = None
    token: Annotated[SecretSource | None, EnvVar("NATS_TOKEN", secret=True)] = None
    credentials_file: Annotated[SecretSource | None, EnvVar("NATS_CREDS_FILE", form="file", secret=True)] = None
    """Content of a credentials file. It is mounted as a file."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = [self.user, self.token, self.credentials_file]
        if sum(way is not None for way in ways) > 1:
            raise ValueError("expected one of `user` with `password`, `token` and `credentials_file`")
        if (self.user is None) != (self.password is None):
            raise ValueError("expected `user` and `password` together")
        return self


class KafkaSettings(StrictModel):
    """Change events to Kafka."""

    topic: Annotated[Text, EnvVar("KAFKA_TOPIC")]
    config: dict[Text, str]
    """Settings of librdkafka, such as `bootstrap.servers`; no secrets. The default port of a server is 9092."""
    secrets: dict[Text, SecretSource] = {}
    """Secret settings of librdkafka, such as `sasl.password`."""

    @model_validator(mode="after")
    def _no_secrets_in_plain(self) -> Self:
        if plain := sorted(_KAFKA_SECRETS & self.config.keys()):
            raise ValueError(f"`{plain[0]}` belongs to `secrets`, by reference, and not the secret itself")
        if "bootstrap.servers" not in self.config:
            raise ValueError("`config` needs `bootstrap.servers`")
        return self

    @property
    def broker_urls(self) -> list[str]:
        """Addresses of `bootstrap.servers`, `kafka://HOST[:PORT]`. librdkafka accepts a protocol before each host."""
        servers = [server.strip() for server in self.config["bootstrap.servers"].split(",")]
        return [f"kafka://{_KAFKA_PROTOCOL.sub('', server)}" for server in servers if server]

    @model_validator(mode="after")
    def _check_brokers(self) -> Self:
        urls = self.broker_urls
        if not urls or not all(_is_host_and_port(url.removeprefix("kafka://")) for url in urls):
            raise ValueError("`bootstrap.servers` in `config`: expected HOST[:PORT], separated by commas")
        for url in urls:
            check_reachable(url)
        return self


class EventSettings(StrictModel):
    """Change events."""

    nats: Annotated[NatsSettings | None, EnvPrefix("")] = None
    kafka: Annotated[KafkaSettings | None, EnvPrefix("")] = None
    log_cloudevents: Annotated[bool | None, EnvVar("LOG_CLOUDEVENTS")] = None
