"""Settings of change events: NATS, Kafka and the log."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from lakewright.platform_stack.settings.types import SecretSource, Text
from lakewright.platform_stack.settings.variables import EnvPrefix, EnvVar
from lakewright.validation.strict_model import StrictModel

_KAFKA_SECRETS = frozenset(
    {"sasl.password", "sasl.oauthbearer.client.secret", "ssl.key.password", "ssl.keystore.password"}
)


class NatsSettings(StrictModel):
    """Change events to NATS."""

    address: Annotated[Annotated[str, Field(pattern=r"^(nats|tls)://[^\s/]+$")], EnvVar("NATS_ADDRESS")]
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
    """Settings of librdkafka, such as `bootstrap.servers`; no secrets."""
    secrets: dict[Text, SecretSource] = {}
    """Secret settings of librdkafka, such as `sasl.password`."""

    @model_validator(mode="after")
    def _no_secrets_in_plain(self) -> Self:
        if plain := sorted(_KAFKA_SECRETS & self.config.keys()):
            raise ValueError(f"`{plain[0]}` belongs to `secrets`, by reference, and not the secret itself")
        if "bootstrap.servers" not in self.config:
            raise ValueError("`config` needs `bootstrap.servers`")
        return self


class EventSettings(StrictModel):
    """Change events."""

    nats: Annotated[NatsSettings | None, EnvPrefix("")] = None
    kafka: Annotated[KafkaSettings | None, EnvPrefix("")] = None
    log_cloudevents: Annotated[bool | None, EnvVar("LOG_CLOUDEVENTS")] = None
