"""`scripts/aws_inputs.py` reports AWS inputs that the installed pulumi_aws does not have, or that it cannot read."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "aws_inputs.py"
LIFECYCLE = 's3.BucketLifecycleConfiguration("a", bucket="b", {})'
PROGRAMS = {
    "unknown": 's3.BucketVersioning("a", versioning_configuration={"state": "Enabled"}, mfa_token="1")',
    "made": LIFECYCLE.format("rules=make_rules()"),
    "hidden": LIFECYCLE.format("**settings"),
    "branch": LIFECYCLE.format('rules=[{"status": "On"}] if late else None'),
    "variable": 'rules = [{"state": "On"}]\n' + LIFECYCLE.format("rules=rules"),
    "known": LIFECYCLE.format("rules=x.apply(lambda y: encryption_rules(y))"),
    "function": "get_caller_identity_output(account=1)",
    "class-import": "from pulumi_aws.s3 import Bucket",
    "module-import": "import pulumi_aws.s3 as storage",
    "right": 's3.BucketVersioning("a", bucket="b", versioning_configuration={"status": "Enabled"})',
}
MESSAGES = {
    "unknown": [
        "BucketVersioningInitArgs has no input `mfa_token`",
        "BucketVersioningInitArgs needs the input `bucket`",
        "`versioning_configuration`: BucketVersioningVersioningConfigurationArgsDict has no input `state`",
        "BucketVersioningVersioningConfigurationArgsDict needs the input `status`",
    ],
    "made": ["cannot be read: write it in place, or add the function that makes it to MADE_VALUES"],
    "hidden": ["behind `**` cannot be read"],
    "branch": ["BucketLifecycleConfigurationRuleArgsDict needs the input `id`"],
    "variable": ["BucketLifecycleConfigurationRuleArgsDict has no input `state`"],
    "known": ["BucketLifecycleConfigurationRuleArgsDict has no input `bucket_key_enabled`"],
    "function": ["get_caller_identity_output has no input `account`"],
    "class-import": ["calls of `from pulumi_aws.s3 import Bucket` are not read"],
    "module-import": ["calls of `import pulumi_aws.s3 as storage` are not read"],
    "right": [],
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines of one run over a file for each program."""
    folder = tmp_path_factory.mktemp("programs")
    for name, program in PROGRAMS.items():
        (folder / f"{name}.py").write_text(f"from pulumi_aws import get_caller_identity_output, s3\n{program}\n")
    result = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    return result.stdout.splitlines()


@pytest.mark.parametrize("name", PROGRAMS)
def test_mistakes_of_inputs_are_reported(name: str, report: list[str]) -> None:
    lines = [line for line in report if f"/{name}.py:" in line]

    assert all(any(message in line for line in lines) for message in MESSAGES[name])
    assert bool(lines) == bool(MESSAGES[name])


def test_folder_without_calls_is_refused(tmp_path: Path) -> None:
    result = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=False)

    assert result.returncode == 1
    assert "no call of pulumi_aws was found" in result.stdout
