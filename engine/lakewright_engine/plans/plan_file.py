"""Plan files: a JSON document with a content hash and a signature. Reading one needs no passphrase, trusting it does.

Format 1: `lakewright_plan`, `engine` {name, version}, `project`, `stack`, `created`, `options`, `state` {hash, time},
`inputs` {name: hash}, `changes` {op: count}, `steps`, `contents` of what they delete, the engine's own parts,
`secrets_provider`, `sha256` of all that as canonical JSON, and `signature`, its HMAC with a key of the stack's secrets.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from lakewright_engine.model.errors import PlanError
from lakewright_engine.plans.model import PlanOptions, StateVersion
from lakewright_engine.plans.state_version import canonical_json
from lakewright_engine.storage import files

FORMAT = 1
_MARK = "lakewright_plan"
SIGNATURE_KEY = "lakewright plan signature v1"
"""The purpose for which a secrets manager derives the key of signatures."""
_SEALS = ("sha256", "signature")
NEW_PLAN_HINT = "Make a new plan with `lakewright preview --save-plan FILE`"


@dataclass(frozen=True)
class PlanDocument:
    """The content of a plan file. Its hash is right; only `verify` proves who wrote it."""

    file: Path
    body: dict[str, Any]

    @property
    def engine(self) -> str:
        """The engine that made the plan: `embedded` or `pulumi`."""
        return self.body["engine"]["name"]

    @property
    def engine_version(self) -> str:
        """The version of that engine."""
        return self.body["engine"]["version"]

    @property
    def project(self) -> str:
        """The project's name."""
        return self.body["project"]

    @property
    def stack(self) -> str:
        """The stack's name."""
        return self.body["stack"]

    @property
    def created(self) -> str:
        """The time at which the plan was made, RFC 3339 in UTC."""
        return self.body["created"]

    @property
    def options(self) -> PlanOptions:
        """The options of the preview."""
        return PlanOptions.from_json(self.body["options"])

    @property
    def state(self) -> StateVersion:
        """The version of the state that the plan starts from."""
        return StateVersion(**self.body["state"])

    @property
    def inputs(self) -> dict[str, str]:
        """Hashes of the inputs of the steps, by name."""
        return self.body["inputs"]

    @property
    def changes(self) -> dict[str, int]:
        """Counts by operation, as in the preview's summary."""
        return self.body["changes"]

    @property
    def has_changes(self) -> bool:
        """Return whether the plan changes anything."""
        return any(count for op, count in self.changes.items() if op not in ("same", "read"))

    @property
    def sha256(self) -> str:
        """The hash of the content, for people to compare."""
        return self.body["sha256"]

    @property
    def is_signed(self) -> bool:
        """Return whether the plan has a signature."""
        return bool(self.body.get("signature"))

    @property
    def salt(self) -> str:
        """The salt of the passphrase that encrypts the plan's secrets; empty if there is none."""
        provider = cast("dict[str, Any]", self.body.get("secrets_provider") or {})
        state = cast("dict[str, Any]", provider.get("state") or {})
        return str(state.get("salt") or "")

    def verify(self, key: bytes) -> None:
        """Refuse a plan that was not written with the stack's secrets.

        Raises:
            PlanError: The signature is missing or wrong.
        """
        expected = _sign(_content(self.body), key)
        if not hmac.compare_digest(expected, str(self.body.get("signature") or "")):
            raise PlanError(
                f"{self.file}: the signature is wrong: the plan was changed after it was made, or was made with "
                f"another passphrase than that of stack '{self.stack}'. {NEW_PLAN_HINT}"
            )


def write_plan(file: Path, body: dict[str, Any], key: bytes | None) -> PlanDocument:
    """Write a plan of mode 0600 atomically. Without a key it is not signed.

    Raises:
        PlanError: The file is something else than a plan, or cannot be written.
    """
    refuse_other_file(file)
    content = _content({_MARK: FORMAT, **body})
    sealed = {**json.loads(content), "sha256": hashlib.sha256(content).hexdigest()}
    if key is not None:
        sealed["signature"] = _sign(content, key)
    try:
        files.write(file, json.dumps(sealed, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n")
        file.chmod(0o600)  # also in a folder that is shared with a group
    except OSError as error:
        raise PlanError(f"{file}: the plan could not be written: {error.strerror or error}") from error
    return PlanDocument(file, sealed)


def refuse_other_file(file: Path) -> None:
    """Refuse to overwrite a file that is not a plan, or a folder.

    Raises:
        PlanError: There is such a file.
    """
    if file.is_dir():
        raise PlanError(f"{file} is a folder: name the file that the plan is written to")
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise PlanError(f"{file} cannot be read: {error.strerror or error}") from error
    if content.strip() and _MARK not in _parse(content):
        raise PlanError(f"{file} exists and is not a plan: choose another name, or remove it")


def read_plan(file: Path) -> PlanDocument:
    """Read a plan file.

    Raises:
        PlanError: The file is missing, no plan, damaged, or of a newer format.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise PlanError(f"{file} cannot be read: {error.strerror or error}") from error
    body = _parse(content)
    if _MARK not in body:
        cut = content.lstrip().startswith(b"{") and f'"{_MARK}"'.encode() in content
        reason = (
            f"is damaged or truncated. {NEW_PLAN_HINT}" if cut else "is not a plan that `preview --save-plan` wrote"
        )
        raise PlanError(f"{file} {reason}")
    if body[_MARK] != FORMAT:
        raise PlanError(
            f"{file} has format {body[_MARK]!r}; this version of lakewright reads format {FORMAT}. Use the version "
            "that made the plan, or make a new plan"
        )
    document = PlanDocument(file, body)
    if hashlib.sha256(_content(body)).hexdigest() != body.get("sha256"):
        raise PlanError(
            f"{file}: the content does not match its hash: the file is damaged or was edited. {NEW_PLAN_HINT}"
        )
    try:
        _ = (document.engine, document.engine_version, document.project, document.stack, document.created)
        _ = (document.options, document.state, document.inputs.items(), document.changes.items(), document.salt)
    except (KeyError, TypeError, AttributeError) as error:
        raise PlanError(f"{file} is damaged: {type(error).__name__}: {error}. {NEW_PLAN_HINT}") from error
    return document


def _parse(content: bytes) -> dict[str, Any]:
    """Return a JSON object; empty if the content is none."""
    try:
        body: Any = json.loads(content)
    except ValueError:
        return {}
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _content(body: dict[str, Any]) -> bytes:
    return canonical_json({key: value for key, value in body.items() if key not in _SEALS})


def _sign(content: bytes, key: bytes) -> str:
    return hmac.digest(key, content, "sha256").hex()
