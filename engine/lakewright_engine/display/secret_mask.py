"""Replace the values of secret configuration in texts by `[secret]`, with the rules of the Pulumi CLI.

The CLI masks the messages, program output and property values of its events. Values of fewer than three bytes and
`true` and `false` remain, because masking them would make most texts unreadable. A value that spans lines is masked in
a message, but not in program output, which is read line by line. Source: `replacements` in Pulumi's
`sdk/go/common/util/logging/log.go` and `filterPropertyValue` in `pkg/engine/events.go`, version 3.260.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from lakewright_engine.display.event_states import list_states
from lakewright_engine.display.property_diff import HIDDEN_SECRET

if TYPE_CHECKING:
    from pulumi.automation.events import EngineEvent, StepEventStateMetadata

_ATTRIBUTE = "secret_mask"
_MIN_BYTES = 3
_GO_ESCAPES = {character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
"""Characters that Go's `json.Marshal` escapes and Python's `json.dumps` does not."""


class SecretMask:
    """Masks the secret values of a stack's configuration. Thread-safe."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """Mask these values and their forms in JSON. Without values, texts remain as they are."""
        forms = {form for value in values if _is_masked(value) for form in _list_forms(value)}
        # A value that contains another must be masked as a whole, so longer values precede.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    @property
    def is_active(self) -> bool:
        """Return whether there are values to mask."""
        return self._pattern is not None

    def apply(self, text: str) -> str:
        """Return the text with `[secret]` in place of each secret value."""
        return text if self._pattern is None else self._pattern.sub(HIDDEN_SECRET, text)

    def apply_to_texts(self, value: Any) -> Any:
        """Return a JSON value with `[secret]` in place of each secret value in its texts."""
        if isinstance(value, str):
            return self.apply(value)
        if isinstance(value, dict):
            return {key: self.apply_to_texts(item) for key, item in cast("dict[str, Any]", value).items()}
        return [self.apply_to_texts(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value

    def attach(self, event: EngineEvent) -> None:
        """Attach the mask to the states of an event, whose properties remain exact: deletions are checked with them."""
        if not self.is_active:
            return
        for _, state in list_states(event):
            setattr(state, _ATTRIBUTE, self)


def mask_properties(state: StepEventStateMetadata | None, properties: dict[str, Any]) -> dict[str, Any]:
    """Return properties of a state with the mask that is attached to it; without one, as they are."""
    mask: SecretMask | None = getattr(state, _ATTRIBUTE, None)
    return properties if mask is None else mask.apply_to_texts(properties)


def _is_masked(value: str) -> bool:
    return len(value.encode()) >= _MIN_BYTES and value.lower() not in ("true", "false")


def _list_forms(value: str) -> list[str]:
    """Return a value as text, and as Python and Go write it inside of a JSON text."""
    unicode_form, ascii_form = (json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (False, True))
    go_form = "".join(_GO_ESCAPES.get(character, character) for character in unicode_form)
    return [value, unicode_form, ascii_form, go_form]
