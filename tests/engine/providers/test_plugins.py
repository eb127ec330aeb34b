"""Provider plugins: their log messages, their crashes, and the precedence of sandbox providers."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from lakewright_engine.processes.child_process import describe_exit
from stackrunner import RunOutcome, Stack

SOURCE = Path(__file__).parents[1] / "talkative"
PROGRAM = """
import os
import pulumi
properties = {"gate": os.environ.get("GATE"), "crash": "CRASH" in os.environ}
pulumi.CustomResource("talkative:index:Thing", "thing", properties)
"""

RENDERS = """
import os
import pulumi
import pulumi_kubernetes as k8s
provider = k8s.Provider("render", render_yaml_to_directory=os.environ["RENDER_TO"] or None)
k8s.core.v1.Namespace("space", metadata={"name": "space"}, opts=pulumi.ResourceOptions(provider=provider))
"""


@pytest.fixture(scope="session")
def talkative(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the provider and return its folder."""
    if shutil.which("go") is None:
        pytest.skip("needs Go, which is not on the PATH, to build a provider")
    if subprocess.run(["go", "mod", "download"], cwd=SOURCE, capture_output=True, check=False).returncode:
        pytest.skip("needs Pulumi's Go SDK to build a provider, and its module cannot be downloaded here")
    folder = tmp_path_factory.mktemp("plugins")
    subprocess.run(["go", "build", "-o", folder / "pulumi-resource-talkative", "."], cwd=SOURCE, check=True)
    return folder


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(tmp_path, PROGRAM)


def settings(talkative: Path, source: str) -> dict[str, str]:
    """Return an environment in which the plugin is on the PATH and gets the engine's address from `source`."""
    return {"PATH": f"{talkative}{os.pathsep}{os.environ['PATH']}", "TALKATIVE_ENGINE": source}


def diagnostics(outcome: RunOutcome) -> list[tuple[str, str, bool]]:
    """Return severity, text and whether it was a status of every message about the resource."""
    diagnostic_events = [event.diagnostic_event for event in outcome.events if event.diagnostic_event is not None]
    return [
        (diagnostic.severity, diagnostic.message.strip(), bool(diagnostic.ephemeral))
        for diagnostic in diagnostic_events
        if diagnostic.urn and diagnostic.urn.endswith("::thing")
    ]


def join_messages(outcome: RunOutcome) -> str:
    """Return all messages of a run."""
    return "".join(event.diagnostic_event.message for event in outcome.events if event.diagnostic_event is not None)


GROUP = pytest.mark.xdist_group("talkative")
"""One worker builds the provider."""


@GROUP
@pytest.mark.parametrize("source", ["argument", "handshake"])
def test_started_plugin_logs_to_the_engine(talkative: Path, stack: Stack, source: str) -> None:
    outcome = stack.run("up", env=settings(talkative, source))

    assert outcome.exit == 0, outcome.messages
    assert diagnostics(outcome) == [
        ("info", "making the thing", False),
        ("warning", "things are deprecated", False),
        ("info", "waiting for the gate", True),
    ]
    assert outcome.messages == ["warning: things are deprecated"]
    destroyed = stack.run("destroy", env=settings(talkative, source))
    assert destroyed.exit == 0, destroyed.messages
    assert diagnostics(destroyed) == [("info", "taking the thing away", False)]


@GROUP
def test_attached_plugin_logs_to_the_engine(talkative: Path, stack: Stack) -> None:
    environ = os.environ | {"TALKATIVE_ENGINE": "attach"}
    with subprocess.Popen(
        [talkative / "pulumi-resource-talkative"], env=environ, stdout=subprocess.PIPE, text=True
    ) as plugin:
        assert plugin.stdout is not None
        attached = {"PULUMI_DEBUG_PROVIDERS": f"talkative:{plugin.stdout.readline().strip()}"}
        outcome = stack.run("up", env=attached)
        plugin.terminate()

    assert outcome.exit == 0, outcome.messages
    assert ("info", "making the thing", False) in diagnostics(outcome)


@GROUP
def test_status_arrives_while_plugin_waits(talkative: Path, stack: Stack, tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    def open_gate(event: Any) -> None:
        if event.diagnostic_event is not None and event.diagnostic_event.message == "waiting for the gate\n":
            gate.touch()

    outcome = stack.run("up", env=settings(talkative, "argument") | {"GATE": str(gate)}, on_event=open_gate)

    assert outcome.exit == 0, outcome.messages
    assert outcome.changes["create"] == 2


@GROUP
def test_plugin_crash_is_one_sentence(talkative: Path, stack: Stack) -> None:
    outcome = stack.run("up", env=settings(talkative, "argument") | {"CRASH": "1"})

    assert outcome.exit == 1
    [error] = [message for _, message, _ in diagnostics(outcome)]
    assert error.splitlines()[0] == (
        "provider 'talkative' crashed: runtime error: invalid memory address or nil pointer dereference (exit code 2)"
    )
    assert "goroutine" not in join_messages(outcome)
    loud = stack.run("up", env=settings(talkative, "argument") | {"CRASH": "1"}, verbose=True)
    assert "goroutine" in join_messages(loud)


def test_plugin_crash_at_start_is_one_sentence(tmp_path: Path, stack: Stack) -> None:
    install(tmp_path / "bin" / "pulumi-resource-talkative", CRASHES)

    outcome = stack.run("up", env={"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"})

    assert outcome.exit == 1
    assert "error: provider 'talkative' did not start: assignment to entry in nil map" in outcome.messages
    assert "goroutine" not in str(outcome.messages)


CRASHES = """#!/bin/sh
printf 'panic: assignment to entry in nil map\\n\\ngoroutine 1 [running]:\\nmain.main()\\n\\t/src/main.go:9\\n' >&2
exit 2
"""


def install(plugin: Path, script: str) -> None:
    plugin.parent.mkdir(parents=True)
    plugin.write_text(script)
    plugin.chmod(0o755)


@pytest.mark.parametrize("leftover", ["3.0.0.lock", "3.0.0.partial", "3.0.0/unpacked"])
def test_newest_complete_installation_is_used(tmp_path: Path, leftover: str) -> None:
    """The CLI keeps lock files beside the plugins, and leaves folders of interrupted installations."""
    plugins = tmp_path / "home" / "plugins"
    for version in ("2.0.0", "2.1.0"):
        install(plugins / f"resource-talkative-v{version}" / "pulumi-resource-talkative", PRINTS_ITS_PATH)
    file = plugins / f"resource-talkative-v{leftover}"
    file.parent.mkdir(exist_ok=True)
    file.touch()

    outcome = Stack(tmp_path, PROGRAM).run("up", env={"PULUMI_HOME": str(tmp_path / "home")})

    assert "resource-talkative-v2.1.0/pulumi-resource-talkative" in str(outcome.messages)


PRINTS_ITS_PATH = """#!/bin/sh
echo "$0" >&2
exit 2
"""


def test_missing_version_is_named_beside_others(tmp_path: Path) -> None:
    """The SDK needs one version, which the command without a version would not install."""
    for version in ("0.0.1", "99.0.0-alpha.1+build"):
        plugin = tmp_path / "home" / "plugins" / f"resource-talkative-v{version}" / "pulumi-resource-talkative"
        install(plugin, PRINTS_ITS_PATH)
    program = (
        PROGRAM + 'pulumi.CustomResource("talkative:index:Thing", "b", {}, pulumi.ResourceOptions(version="2.0.0"))'
    )

    outcome = Stack(tmp_path, program).run("up", env={"PULUMI_HOME": str(tmp_path / "home")})

    assert "`pulumi plugin install resource talkative 2.0.0`" in str(outcome.messages)


def test_sandbox_providers_take_precedence_in_a_sandbox(tmp_path: Path) -> None:
    """Other plugins are installed, and the plugin for a real cluster is used from there."""
    version = metadata.version("pulumi-kubernetes")
    home = tmp_path / "home"
    install(home / "plugins" / f"resource-kubernetes-v{version}" / "pulumi-resource-kubernetes", CRASHES)
    stack = Stack(tmp_path, RENDERS)
    rendering = {"PULUMI_HOME": str(home), "RENDER_TO": str(tmp_path / "rendered")}

    assert stack.run("up", env=rendering).exit == 1
    outcome = stack.run("up", env=rendering, in_sandbox=True)
    elsewhere = stack.run("up", env=rendering | {"RENDER_TO": ""}, in_sandbox=True)

    assert outcome.exit == 0, outcome.messages
    assert len(list((tmp_path / "rendered").rglob("*.yaml"))) == 1
    assert "provider 'kubernetes' did not start: assignment to entry in nil map" in str(elsewhere.messages)


@pytest.mark.parametrize(
    ("code", "output", "expected"),
    [
        (2, ["panic: boom [recovered, repanicked]", "", "goroutine 7 [running]:"], "crashed: boom (exit code 2)"),
        (2, ["fatal error: all goroutines are asleep"], "crashed: all goroutines are asleep (exit code 2)"),
        (
            1,
            ["Traceback (most recent call last):", '  File "x"', "OSError: full"],
            "crashed: OSError: full (exit code 1)",
        ),
        (
            3,
            ["starting", "no licence"],
            "ended with exit code 3 before the engine was done with it, after it printed: no",
        ),
        (0, [], "ended with exit code 0 before the engine was done with it"),
        (-9, ["a line"], "was ended by signal 9 (SIGKILL)"),
    ],
)
def test_describe_exit_of_plugin(code: int, output: list[str], expected: str) -> None:
    assert expected in describe_exit("provider 'x'", code, output)
