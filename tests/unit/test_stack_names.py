"""Every command refuses impossible stack names, which would lead out of the folders of stacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright.cli import main

COMMANDS = [
    ["preview"],
    ["preview", "--engine", "embedded", "--json"],
    ["up", "--yes"],
    ["refresh", "--yes"],
    ["destroy", "--yes"],
    ["stack", "init"],
    ["stack", "output"],
    ["stack", "history"],
    ["stack", "export"],
    ["stack", "import"],
    ["stack", "rm", "--yes", "--force"],
    ["stack", "cancel", "--yes"],
    ["state", "ls"],
    ["state", "rm", "urn:pulumi:dev::conf::a:b:C::c", "--yes"],
    ["state", "unprotect", "--all", "--yes"],
    ["state", "rename", "urn:pulumi:dev::conf::a:b:C::c", "d", "--yes"],
    ["config"],
    ["config", "--format", "json"],
    ["config", "get", "key"],
    ["config", "set", "key", "value"],
    ["config", "rm", "key"],
    ["undrop", "--list"],
    ["external-ids"],
    ["doctor"],
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: conf\nruntime: python\nstackConfigDir: tenants\n")
    (tmp_path / "__main__.py").write_text("")
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'state'}")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "demo")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="0"):
        main(["stack", "init", "dev"])
    backup = tmp_path / "state" / ".pulumi" / "backups" / "conf" / "dev" / "dev.1.json"
    backup.parent.mkdir(parents=True)
    backup.write_text("{}")
    # The state of a stack named `..` would be this file, and let `rm` continue.
    (tmp_path / "state" / ".pulumi" / "stacks" / "conf" / "...json").write_text('{"version": 3, "checkpoint": {}}')
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_impossible_stack_names_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    before = sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)

    for name in ("..", "../dev", "conf/dev"):
        with pytest.raises(SystemExit) as ended:
            main([*command, "--stack", name])
        assert ended.value.code not in (0, None)
        output = capsys.readouterr()
        assert f"{name!r} is not a stack name" in output.err + output.out

    assert sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts) == before
