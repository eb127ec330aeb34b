"""Check the spec of each tenant in its environment: `python -m unittest discover tests`."""

import subprocess
import sys
import unittest
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


class SpecsTest(unittest.TestCase):
    """The specs of this project."""

    def test_specs_are_valid(self) -> None:
        """Run `lakewright spec validate`, which asks no server."""
        if not any((PROJECT / "tenants").glob("Pulumi.*.yaml")):
            self.skipTest("there is no tenant yet: `lakewright new TENANT` writes its spec")
        command = [sys.executable, "-m", "lakewright.cli", "spec", "validate", "-C", str(PROJECT)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
