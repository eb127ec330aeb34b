"""URNs and provider references, by which resources refer to each other."""

from __future__ import annotations

from dataclasses import dataclass

ROOT_STACK_TYPE = "pulumi:pulumi:Stack"

_PROVIDER_PREFIX = "pulumi:providers:"


@dataclass(frozen=True)
class Urn:
    """The parts of `urn:pulumi:STACK::PROJECT::QUALIFIED_TYPE::NAME`."""

    stack: str
    project: str
    qualified_type: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Urn:
        """Parse a URN. Raise ValueError if the text is not one."""
        parts = text.split("::", 3)
        if len(parts) != 4 or not parts[0].startswith("urn:pulumi:"):
            raise ValueError(f"{text!r} is not a URN (urn:pulumi:STACK::PROJECT::TYPE::NAME)")
        return cls(parts[0].removeprefix("urn:pulumi:"), *parts[1:])

    @property
    def type(self) -> str:
        """The resource type without the types of its parents."""
        return self.qualified_type.rsplit("$", 1)[-1]

    def __str__(self) -> str:
        """Return the URN as text."""
        return f"urn:pulumi:{self.stack}::{self.project}::{self.qualified_type}::{self.name}"


def make_urn(stack: str, project: str, parent: str, type_: str, name: str) -> str:
    """Return the URN of a resource. The types of a parent other than the stack are part of it."""
    qualified = type_
    if parent:
        parent_type = Urn.parse(parent).qualified_type
        if parent_type != ROOT_STACK_TYPE:
            qualified = f"{parent_type}${type_}"
    return str(Urn(stack, project, qualified, name))


def urn_type(urn: str) -> str:
    """Return the resource type in a URN."""
    return Urn.parse(urn).type


def urn_name(urn: str) -> str:
    """Return the resource name in a URN."""
    return Urn.parse(urn).name


def find_package(type_or_token: str) -> str:
    """Return the package of a type or function: `aws:s3/bucket:Bucket` -> `aws`."""
    return type_or_token.split(":", 1)[0]


def is_provider_type(type_: str) -> bool:
    """Return whether a resource of this type is a provider."""
    return type_.startswith(_PROVIDER_PREFIX)


def provider_type(package: str) -> str:
    """Return the resource type of a package's provider."""
    return _PROVIDER_PREFIX + package


def provider_package(type_: str) -> str:
    """Return the package of a provider's type: `pulumi:providers:aws` -> `aws`."""
    return type_.removeprefix(_PROVIDER_PREFIX)


def is_default_provider(urn: str) -> bool:
    """Return whether a URN is that of a default provider."""
    parsed = Urn.parse(urn)
    return is_provider_type(parsed.type) and (parsed.name == "default" or parsed.name.startswith("default_"))


def split_reference(reference: str) -> tuple[str, str]:
    """Split the reference `URN::ID` of a provider into URN and id."""
    urn, _, object_id = reference.rpartition("::")
    return urn, object_id
