"""Pulumi.yaml of this repository, as the Pulumi CLI resolves it."""

from __future__ import annotations

from pathlib import Path

import yaml
from lakewright_engine.project.project import PulumiProject

REPOSITORY = Path(__file__).parents[2]


def test_virtualenv_is_the_same_from_both_folders() -> None:
    """The CLI resolves it from the folder of Pulumi.yaml, and for dynamic providers from the folder of the program."""
    for file in (*REPOSITORY.glob("Pulumi.yaml"), *REPOSITORY.glob("infra/*/Pulumi.yaml")):
        project = PulumiProject.load(file.parent)
        settings = yaml.safe_load(project.file.read_text())["runtime"]
        virtualenv = settings["options"]["virtualenv"] if isinstance(settings, dict) else ""
        assert (project.root / virtualenv).resolve() == (project.working_directory / virtualenv).resolve(), file
