"""The process of a pod in tests has the user and groups of the pod's security context."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os
from tests.spark.pod_root import change_user

change_user({"runAsUser": 4001, "runAsGroup": 4002, "fsGroup": 4003})
print(os.getresuid(), os.getresgid(), os.getgroups())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change its user")
def test_user_and_groups_are_those_of_the_pod() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)

    assert result.stdout == "(4001, 4001, 4001) (4002, 4002, 4002) [4003]\n"
