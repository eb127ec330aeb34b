"""Providers that an earlier version pickled into the state still load."""

import json
import subprocess
import sys
from pathlib import Path

PICKLED = Path(__file__).with_name("pickled-providers.json")
"""Provider by class, as `__provider` of a resource has it: recorded at the module paths before they became final."""

LOAD = """
import base64, json, sys
import dill

pickled = json.load(open(sys.argv[1]))
print(json.dumps({name: type(dill.loads(base64.b64decode(text))).__name__ for name, text in pickled.items()}))
"""
"""What `python -m pulumi.dynamic` does with a `__provider`, in a process that has imported nothing of ours."""


def test_earlier_providers_load() -> None:
    """A fresh process unpickles each provider as the dynamic provider of Pulumi does."""
    result = subprocess.run([sys.executable, "-c", LOAD, str(PICKLED)], capture_output=True, text=True, check=True)

    loaded = json.loads(result.stdout)

    assert len(loaded) == 16
    assert all(name == loaded_name for name, loaded_name in loaded.items())
