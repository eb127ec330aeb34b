"""Decide whether a replacement trigger requires a replacement."""

from __future__ import annotations

from lakewright_engine.model.errors import UnsupportedFeatureError
from lakewright_engine.model.properties import has_secret, has_unknown, is_equal, plaintext, rewrite
from lakewright_engine.model.resources import SecretValue, Value


def refuse_nested_secret(trigger: Value, name: str) -> None:
    """Refuse a secret inside a trigger, for which the CLI replaces the resource at every update.

    Args:
        trigger: The trigger in the program.
        name: The name of the resource in messages.

    Raises:
        UnsupportedFeatureError: A part of the trigger is secret.
    """
    if not isinstance(trigger, SecretValue) and has_secret(trigger):
        raise UnsupportedFeatureError(
            f"{name} has a secret inside its replacement_trigger, for which the Pulumi CLI replaces it at every "
            "update: use a trigger without secrets, such as a version number or a hash"
        )


def is_triggered(old: Value, new: Value) -> bool:
    """Return whether the change from `old` to `new` replaces the resource.

    The CLI compares before it decrypts the state: a secret in `old` counts as null, and null never triggers.
    """
    if has_unknown(new):
        return True
    before, after = rewrite(old, lambda item: None if isinstance(item, SecretValue) else item), plaintext(new)
    return before is not None and after is not None and not is_equal(before, after)


def is_secret_change(old: Value, new: Value) -> bool:
    """Return whether a secret trigger has changed, which does not replace the resource."""
    return isinstance(old, SecretValue) and new is not None and not has_unknown(new) and not is_equal(old, new)
