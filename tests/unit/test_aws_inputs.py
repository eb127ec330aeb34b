"""`scripts/aws_inputs.py` reports AWS inputs that the installed pulumi_aws does not have."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "aws_inputs.py"
PROGRAM = """from pulumi_aws import s3
s3.BucketVersioning("a", versioning_configuration={"state": "Enabled"}, mfa_token="1")
"""


def test_unknown_and_absent_inputs_are_reported(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    result = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "BucketVersioningInitArgs has no input `mfa_token`" in result.stdout
    assert "BucketVersioningInitArgs needs the input `bucket`" in result.stdout
    assert (
        "`versioning_configuration`: BucketVersioningVersioningConfigurationArgsDict has no input `state`"
        in result.stdout
    )
    assert "BucketVersioningVersioningConfigurationArgsDict needs the input `status`" in result.stdout
