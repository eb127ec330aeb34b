"""Writes docs/reference/engines.md, a table of engines that can use a warehouse, from the registry: `make docs`."""

from __future__ import annotations

from pathlib import Path

from lakewright.config_formats.config_format import EngineFacts
from lakewright.config_formats.registry import FORMATS, load_format

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "engines.md"

_INTRODUCTION = """\
# Which engines can use a tenant's warehouses?

`lakewright config` with `--format` prints what an engine needs to reach the warehouses of a stack: the catalog's
address, the warehouse, OAuth2 with a client of your identity provider, and vended credentials. The configuration has
references to secrets, never a secret, and needs no class of this project. Notes on standard error name the variables
to set.

```console
$ lakewright config --stack acme --format trino --out etc/catalog
$ lakewright config --stack acme --format duckdb --warehouse executions > attach.sql
$ lakewright config --stack acme --format flink --client-id flink --client-secret env:FLINK_SECRET --scope lakekeeper
```

- `--engine-version V` chooses the names of properties. Default: the version in the table.
- `--out DIR` writes files and prints their paths; Trino and Dremio need a file for each warehouse. A file with other
  content is replaced only with `--overwrite`.
- `--client-id`, `--client-secret REFERENCE`, `--token-url`, `--scope` and `--audience` name the engine's own client.
  Default: the client of the stack's jobs.
- `--refreshing` uses classes of lakewright-spark, where the engine can load them: they read the secret at each use, and
  read token files that another process renews. A note says which classes.
- `--job-duration 4h` refuses engines whose credentials expire during the longest job. Credentials live as long as
  `token_seconds` of the warehouse in the spec, by default an hour.

Combinations that cannot work are refused, with the reason and a way out: an engine that is too old, signed requests
(`delegation: remote-signing`), storages, token files, audiences.
"""

_STORAGES = {"s3": "S3", "adls": "ADLS", "gcs": "GCS"}
_AUTH = {"client-credentials": "OAuth2", "token": "token", "none": "none"}


def list_engines() -> dict[str, EngineFacts]:
    """Return the engines by the name of their format."""
    formats = {name: load_format(name) for name in FORMATS}
    return {name: config_format.engine for name, config_format in formats.items() if config_format.engine}


def page() -> str:
    """Return the page."""
    lines = [
        _INTRODUCTION,
        "| engine | `--format` | versions | storages with vended credentials | signed requests | authentication"
        " | secrets | refreshes vended credentials | `--refreshing` | tested |",
        f"|{'---|' * 10}",
    ]
    for name, engine in list_engines().items():
        oldest = (
            f"{engine.oldest} and newer; default {engine.version}" if engine.oldest else f"default {engine.version}"
        )
        auth = [text for kind, text in _AUTH.items() if kind in engine.auth_kinds]
        cells = [
            engine.title,
            f"`{name}`",
            oldest,
            ", ".join(text for kind, text in _STORAGES.items() if kind in engine.storages),
            "yes" if "remote-signing" in engine.delegations else "no",
            ", ".join([*auth, *(["audience"] if engine.has_audience else [])]),
            engine.secrets,
            engine.refresh,
            "yes" if engine.refreshing else "no",
            engine.tested,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append("\n## Notes by engine\n")
    for engine in list_engines().values():
        reason = [f"{engine.oldest} is the oldest version: {engine.oldest_reason}"] if engine.oldest else []
        lines += [f"- {engine.title}: {text}." for text in (*reason, *engine.advice)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
