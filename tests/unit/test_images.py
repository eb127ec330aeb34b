"""The container files: digests and hashes everywhere, no root, no secret; its scripts refuse what is not pinned."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from lakewright.environment.cluster import NOT_PULLABLE, TRIAL_IMAGES
from lakewright.kubernetes.runtimes import RUNTIMES

REPOSITORY = Path(__file__).parents[2]
IMAGES = REPOSITORY / "images"
DIGEST = "0123456789abcdef" * 4
FILES = {"spark": "Containerfile", "lakewright": "lakewright.Containerfile"}
LOCKS = {"spark": "requirements.lock", "lakewright": "lakewright-requirements.lock"}
BASES = {"PYTHON_IMAGE": f"python:3.12-slim@sha256:{DIGEST}", "JAVA_IMAGE": f"java:17-jre@sha256:{DIGEST}"}
OTHER_BASES = {"PYTHON_IMAGE": BASES["PYTHON_IMAGE"], "PULUMI_IMAGE": f"pulumi/pulumi-base@sha256:{DIGEST}"}
CHECKSUMS = {"AWS_PLUGIN_SHA256": DIGEST, "KUBERNETES_PLUGIN_SHA256": DIGEST}
both = pytest.mark.parametrize("image", FILES)


def instructions(image: str = "spark") -> list[tuple[str, str]]:
    """Return the instructions of a container file with their arguments, comments left out."""
    text = re.sub(r"^#.*\n", "", (IMAGES / FILES[image]).read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    pairs = [line.partition(" ")[::2] for line in lines if line.strip()]
    return [(name, rest_of_line.strip()) for name, rest_of_line in pairs]


def arguments(name: str, image: str = "spark") -> list[str]:
    return [text for instruction, text in instructions(image) if instruction == name]


def blocks(lock: Path) -> set[str]:
    """Return the packages of a lock, each with its version and hashes.

    Markers are left out: a package that tests need on every system may be needed by an image on one of them.
    """
    return {re.sub(r" ; .* \\\n", " \\\\\n", block.strip()) for block in re.split(r"\n(?=[A-Za-z])", lock.read_text())}


def run_build(tools: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{tools}:/usr/bin:/bin", **variables}
    command = ["bash", str(REPOSITORY / "scripts" / "images.sh")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def write_tool(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(("image", "bases"), [("spark", BASES), ("lakewright", OTHER_BASES)])
def test_base_images_are_arguments_without_default(image: str, bases: dict[str, str]) -> None:
    settings = CHECKSUMS if image == "lakewright" else ['STORAGES=""']
    assert set(arguments("ARG", image)) == {*bases, *settings}
    assert {text.split()[0] for text in arguments("FROM", image)} == {f"${{{name}}}" for name in bases}


def test_image_runs_as_the_unit_does() -> None:
    user, *_ = {settings.user for runtime, settings in RUNTIMES.items() if runtime == "spark"}

    assert instructions()[-5:][0] == ("USER", f"{user}:{user}")
    assert arguments("EXPOSE") == [str(RUNTIMES["spark"].port)]


@both
def test_packages_and_build_back_ends_have_hashes(image: str) -> None:
    commands = [command for text in arguments("RUN", image) for command in text.split("&&")]
    installs = [command for command in commands if " install " in command and "pulumi plugin" not in command]
    syncs = [command for command in commands if " sync " in command]

    assert syncs
    assert [command for command in (*installs, *syncs) if "--require-hashes" not in command] == [
        command for command in installs if "--no-deps" in command and re.search(r"( \./[a-z]+)+\s*$", command)
    ]
    assert all("--build-constraints requirements-build.lock" in command for command in syncs)
    assert not [command for command in commands if re.search(r"\b(curl|wget|apt|apt-get)\b", command)]
    assert arguments("ADD", image) == []


def test_plugins_have_the_packages_versions_and_checksums() -> None:
    (install,) = [text for text in arguments("RUN", "lakewright") if "pulumi plugin" in text]

    for name in ("aws", "kubernetes"):
        expected = (
            f'pulumi plugin install resource {name} "$(version_of {name})" --checksum "${name.upper()}_PLUGIN_SHA256"'
        )
        assert expected in install
        assert re.search(rf"^pulumi-{name}==[0-9.]+", (IMAGES / LOCKS["lakewright"]).read_text(), re.MULTILINE)


def test_drift_check_runs_as_an_unprivileged_user() -> None:
    user, *_ = {settings.user for runtime, settings in RUNTIMES.items() if runtime == "spark"}

    assert arguments("USER", "lakewright") == [f"{user}:{user}"]
    assert arguments("WORKDIR", "lakewright")[-1] == "/project"


@pytest.mark.parametrize(
    ("image", "needed", "unwanted"),
    [
        ("spark", "pyspark==", ("pulumi", "moto", "pytest")),
        ("lakewright", "pulumi==", ("pyspark", "moto", "pytest", "fastapi")),
    ],
)
def test_image_has_packages_of_the_repository_only(image: str, needed: str, unwanted: tuple[str, ...]) -> None:
    of_image, of_repository = blocks(IMAGES / LOCKS[image]), blocks(REPOSITORY / "requirements.lock")

    assert of_image <= of_repository
    assert not [block for block in of_image if block.startswith(unwanted)]
    assert [block for block in of_image if block.startswith(needed)]


def test_image_has_all_packages_of_the_jobs() -> None:
    project = tomllib.loads((REPOSITORY / "spark" / "pyproject.toml").read_text())["project"]
    requirements = [*project["dependencies"], *project["optional-dependencies"]["jobs"]]
    locked = {block.partition("==")[0] for block in blocks(IMAGES / "requirements.lock")}

    assert {str(re.split(r"[\[=<>]", requirement)[0]) for requirement in requirements} <= locked


def test_image_has_all_packages_of_the_commands() -> None:
    locked = {block.partition("==")[0] for block in blocks(IMAGES / LOCKS["lakewright"])}
    for package in ("components", "engine", "spark"):
        project = tomllib.loads((REPOSITORY / package / "pyproject.toml").read_text())["project"]
        # States in buckets, and history entries that the Pulumi CLI compressed.
        extras = project["optional-dependencies"] if package == "engine" else {}
        requirements = [*project["dependencies"], *(name for extra in extras.values() for name in extra)]
        names = {str(re.split(r"[\[=<>]", requirement)[0]) for requirement in requirements}
        assert {name for name in names if not name.startswith("lakewright")} <= locked


@both
def test_image_contains_nothing_but_what_it_runs(image: str) -> None:
    everything, *exceptions = (IMAGES / f"{FILES[image]}.dockerignore").read_text().split()

    assert everything == "*"
    admitted = {line.removeprefix("!") for line in exceptions if line.startswith("!")}
    copied = {word for text in arguments("COPY", image) if "--from" not in text for word in text.split()[:-1]}
    assert copied == admitted
    assert not [name for name in copied if not (REPOSITORY / name).exists()]


@both
def test_no_setting_is_a_secret(image: str) -> None:
    text = " ".join([*arguments("ENV", image), *arguments("ARG", image), *arguments("LABEL", image)]).lower()

    assert not [word for word in ("secret", "token", "password", "credential") if word in text]


@pytest.mark.parametrize(
    ("changed", "value"),
    [
        ("PYTHON_IMAGE", ""),
        ("JAVA_IMAGE", "java:17"),
        ("JAVA_IMAGE", "java@sha256:abc"),
        ("PYTHON_IMAGE", "a b@sha256:"),
    ],
)
def test_build_requires_digests(changed: str, value: str, tmp_path: Path) -> None:
    write_tool(tmp_path / "tools", "docker", "echo started")

    run = run_build(tmp_path / "tools", **{**BASES, changed: value})

    assert run.returncode == 2
    assert f"images: {changed}: expected an image by digest" in run.stderr
    assert "started" not in run.stdout


@pytest.mark.parametrize(
    ("changed", "value", "expected"),
    [
        ("PULUMI_IMAGE", "pulumi/pulumi-base:latest", "an image by digest"),
        ("AWS_PLUGIN_SHA256", "", "64 hexadecimal digits"),
        ("KUBERNETES_PLUGIN_SHA256", "abc", "64 hexadecimal digits"),
        ("IMAGE", "other", "spark or lakewright"),
    ],
)
def test_build_of_lakewright_requires_checksums(changed: str, value: str, expected: str, tmp_path: Path) -> None:
    write_tool(tmp_path / "tools", "docker", "echo started")

    run = run_build(tmp_path / "tools", **{"IMAGE": "lakewright", **OTHER_BASES, **CHECKSUMS, changed: value})

    assert run.returncode == 2
    assert f"images: {changed}: expected {expected}" in run.stderr
    assert "started" not in run.stdout


def test_build_of_lakewright_passes_everything_on(tmp_path: Path) -> None:
    write_tool(tmp_path / "tools", "podman", 'echo "$@"')

    run = run_build(tmp_path / "tools", IMAGE="lakewright", **OTHER_BASES, **CHECKSUMS)

    assert run.returncode == 0, run.stderr
    for name, value in {**OTHER_BASES, **CHECKSUMS}.items():
        assert f"--build-arg {name}={value}" in run.stdout
    assert "--file images/lakewright.Containerfile" in run.stdout
    assert "--ignorefile images/lakewright.Containerfile.dockerignore" in run.stdout
    assert f"--tag lakewright:{version('lakewright')} ." in run.stdout


def test_build_says_which_tools_it_needs(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "dirname", "sed"):
        (tools / name).symlink_to(f"/usr/bin/{name}")

    environment = {"PATH": str(tools), **BASES}
    command = [str(tools / "bash"), str(REPOSITORY / "scripts" / "images.sh")]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert run.returncode == 2
    assert "expected docker, podman or buildah on the PATH" in run.stderr


def test_build_passes_the_digests_on(tmp_path: Path) -> None:
    write_tool(tmp_path / "tools", "docker", 'echo "$@"')

    run = run_build(tmp_path / "tools", TAG="registry.example/jobs:1", **BASES)

    assert run.returncode == 0, run.stderr
    for name, value in BASES.items():
        assert f"--build-arg {name}={value}" in run.stdout
    assert "--tag registry.example/jobs:1 ." in run.stdout
    assert "syft is not on the PATH" in run.stdout


def test_build_adds_the_jars_of_named_services(tmp_path: Path) -> None:
    write_tool(tmp_path / "tools", "docker", 'echo "$@"')

    run = run_build(tmp_path / "tools", STORAGES="adls gcs", **BASES)
    refused = run_build(tmp_path / "tools", STORAGES="adls s3", **BASES)

    assert "--build-arg STORAGES=adls gcs --tag" in run.stdout
    assert refused.returncode == 2
    assert "images: STORAGES: expected adls, gcs or both, found 's3'" in refused.stderr


def test_build_writes_a_bill_of_materials(tmp_path: Path) -> None:
    """`syft` is optional; with it, the build writes the image's packages in SPDX."""
    write_tool(tmp_path / "tools", "docker", "exit 0")
    write_tool(tmp_path / "tools", "syft", 'echo "syft $@"')

    run = run_build(tmp_path / "tools", TAG="registry.example/jobs:1", **BASES)

    assert run.returncode == 0, run.stderr
    assert "syft registry.example/jobs:1 --output spdx-json=dist/lakewright-spark.spdx.json" in run.stdout


def test_entrypoint_starts_executors_and_commands(tmp_path: Path) -> None:
    write_tool(tmp_path / "bin", "java", 'for word in "$@"; do echo "$word"; done')
    names = ("DRIVER_URL", "EXECUTOR_ID", "EXECUTOR_CORES", "APPLICATION_ID", "EXECUTOR_POD_IP")
    variables = {f"SPARK_{name}": f"its-{name}" for name in (*names, "RESOURCE_PROFILE_ID", "EXECUTOR_POD_NAME")}
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dnumber={number} of" for number in range(11)}
    environment = {"PATH": os.environ["PATH"], "JAVA_HOME": str(tmp_path), "SPARK_HOME": "/opt/spark"}
    environment |= {**variables, **options, "SPARK_EXECUTOR_MEMORY": "512m"}

    def run(*arguments: str) -> list[str]:
        command = [str(IMAGES / "entrypoint.sh"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()

    executor = run("executor")
    assert executor[:11] == [f"-Dnumber={number} of" for number in range(11)]
    assert executor[11:16] == [
        *("-Xms512m", "-Xmx512m", "-cp", "/opt/spark/jars/*"),
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
    ]
    assert set(variables.values()) <= set(executor)
    assert run("echo", "another command") == ["another command"]


def test_trial_images_say_that_they_cannot_run() -> None:
    assert all(image.startswith(NOT_PULLABLE) for image in TRIAL_IMAGES.values())
    assert "make-images" in TRIAL_IMAGES["spark"]
