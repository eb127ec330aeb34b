"""Images of the process cluster: the programs that containers of an image run."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_TAG = re.compile(r"(@sha256:[0-9a-f]{64}|:[^:/@]+)+$")


@dataclass(frozen=True)
class Image:
    """The files, command and variables that containers of an image start with, besides the files of this machine."""

    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    """Programs of this machine by their path in the container."""
    entrypoint: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    stop_signal: signal.Signals = signal.SIGTERM
    opened: tuple[Path, ...] = ()
    """Folders of this machine that the container's user may enter."""
    folders: tuple[Path, ...] = ()
    """Folders of this machine that the programs need, also where a volume hides them."""


class ImageStore:
    """Images by repository, and by repository and tag where releases differ."""

    def __init__(self, images: Mapping[str, Image]) -> None:
        """Use images by `REPOSITORY` or `REPOSITORY:TAG`."""
        self._images = images

    def find_image(self, reference: str) -> Image:
        """Return the image of a container. Fails for an image that the tests do not have."""
        tagged_name = reference.partition("@")[0]
        image = self._images.get(tagged_name) or self._images.get(_TAG.sub("", reference))
        assert image is not None, f"no program for the image {reference}"
        return image
