"""Tokens of Kubernetes service accounts, as a cluster projects them into pods."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ServiceAccount:
    """A service account. If it is deleted and created again, it has another uid."""

    namespace: str
    name: str
    uid: str

    @property
    def username(self) -> str:
        """Return the name that Kubernetes uses as the token's subject."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    def claims(self, issuer: str, audience: str, lifetime: float = 3600) -> dict[str, Any]:
        """Return the claims of a token that is valid from now for `lifetime` seconds."""
        now = time.time()
        return {
            "iss": issuer,
            "sub": self.username,
            "aud": [audience],
            "iat": int(now),
            "nbf": int(now),
            "exp": math.ceil(now + lifetime),
            "kubernetes.io": {
                "namespace": self.namespace,
                "serviceaccount": {"name": self.name, "uid": self.uid},
            },
        }
