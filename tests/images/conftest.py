"""Both images, built from their container files without a daemon: buildah in a chroot, on a base of Debian packages.

No image registry is needed. Two parts are replaced: the base images, which `mmdebstrap` makes, and the download of the
plugins by the Pulumi CLI, of which a script makes the same folders with the same modes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.tenant_project import REPOSITORY

PACKAGES = ("python3", "python3-venv", "ca-certificates", "openjdk-17-jre-headless")
USER = "185:185"
PULUMI = """\
#!/bin/sh
# `pulumi plugin install resource NAME VERSION --checksum SUM`: folders of plugins have the mode 0700.
umask 077
folder="$PULUMI_HOME/plugins/resource-$4-v$5"
mkdir -p "$folder"
printf '#!/bin/sh\\necho %s\\n' "$5" > "$folder/pulumi-resource-$4"
chmod 700 "$folder/pulumi-resource-$4"
"""
IMAGES = {
    "lakewright": ("lakewright.Containerfile", ("PYTHON_IMAGE", "PULUMI_IMAGE"), ("AWS", "KUBERNETES")),
    "spark": ("Containerfile", ("PYTHON_IMAGE", "JAVA_IMAGE"), ()),
}


@dataclass(frozen=True)
class Store:
    """Images of buildah in folders of the test."""

    folder: Path

    def run(self, *arguments: str | Path) -> str:
        """Run buildah and return its output."""
        options = ["--root", self.folder / "root", "--runroot", self.folder / "run", "--storage-driver", "vfs"]
        done = subprocess.run(
            ["buildah", *options, *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout.strip()


@dataclass(frozen=True)
class ImageRoot:
    """The files of an image, mounted read-only, with the environment of its configuration."""

    folder: Path
    environment: dict[str, str]

    def run(self, *command: str, volumes: dict[Path, str] | None = None, **variables: str) -> str:
        """Run a command as the image's user: a read-only root, and volumes as a pod has them.

        Args:
            command: The command.
            volumes: Folders of this machine by their path in the image. The command may write in them, unless the path
                ends with `:ro`.
            variables: Further variables.
        """
        done = self.try_run(*command, volumes=volumes, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def try_run(
        self, *command: str, volumes: dict[Path, str] | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as the image's user, and return its result."""
        mounts = [line for folder, path in (volumes or {}).items() for line in self._mount(folder, path)]
        # Names are resolved, and certificates checked, as on this machine.
        shared = [f'mount --bind {path} "{self.folder}{path}"' for path in ("/etc/resolv.conf", "/etc/hosts")]
        script = "\n".join(
            [
                "set -e",
                "mount --make-rprivate /",
                f'mount --bind "{self.folder}" "{self.folder}"',
                f'mount -o remount,bind,ro "{self.folder}"',
                f'mount --rbind /dev "{self.folder}/dev"',
                f'mount -t proc proc "{self.folder}/proc"',
                f'mount -t tmpfs -o mode=1777 tmpfs "{self.folder}/tmp"',
                *(f"[ ! -e {self.folder}/scratch ] || mount -t tmpfs -o mode=1777 tmpfs {self.folder}/scratch",),
                *(line for line in shared if Path(line.split()[2]).exists()),
                *mounts,
                f'exec /usr/sbin/chroot --userspec={USER} "{self.folder}" "$@"',
            ]
        )
        environment = self.environment | variables
        return subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "bash", "-c", script, "bash", *command],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def _mount(self, folder: Path, volume: str) -> Iterator[str]:
        """Yield the commands that mount a volume."""
        path = f"{self.folder}{volume.removesuffix(':ro')}"
        yield f'mkdir -p "{path}"'
        yield f'mount --bind "{folder}" "{path}"'
        if volume.endswith(":ro"):
            yield f'mount -o remount,bind,ro "{path}"'


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Return a store with the base image."""
    if os.geteuid() != 0:
        pytest.skip("mounts and chroots need root")
    for program in ("buildah", "mmdebstrap", "unshare"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed; `make test-images` installs it on Debian and Ubuntu")
    folder = tmp_path_factory.mktemp("images")
    store = Store(folder)
    archive = folder / "base.tar"
    subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}", "bookworm", archive],
        check=True,
    )
    container = store.run("from", "scratch")
    store.run("add", container, archive, "/")
    archive.unlink()
    (folder / "pulumi").write_text(PULUMI)
    store.run("copy", "--chmod", "755", container, folder / "pulumi", "/usr/local/bin/pulumi")
    move = "mkdir -p /opt/java && cp -a /usr/lib/jvm/java-17-openjdk-* /opt/java/openjdk"
    store.run("run", "--isolation", "chroot", container, "--", "sh", "-c", move)
    store.run("commit", "--rm", container, "localhost/base")
    yield store
    shutil.rmtree(folder, ignore_errors=True)


def build_image(store: Store, name: str) -> ImageRoot:
    """Build an image, and return its files."""
    file, bases, plugins = IMAGES[name]
    options = [f"--build-arg={base}=localhost/base" for base in bases]
    options += [f"--build-arg={plugin}_PLUGIN_SHA256={'0' * 64}" for plugin in plugins]
    # Certificate authorities of this machine, which a company's proxy may need.
    certificates = ["--volume", "/etc/ssl/certs:/etc/ssl/certs:ro"]
    # Otherwise the host name is the container's id, which nothing resolves, and no JVM starts.
    host_name = ["--uts", "host"]
    paths = ["--file", f"images/{file}", "--ignorefile", f"images/{file}.dockerignore"]
    store.run(
        "build",
        "--isolation",
        "chroot",
        *host_name,
        "--format",
        "docker",
        *certificates,
        *paths,
        *options,
        "-t",
        name,
        ".",
    )
    container = store.run("from", "--pull-never", f"localhost/{name}")
    template = "{{range .Docker.Config.Env}}{{println .}}{{end}}"
    lines = store.run("inspect", "--format", template, container).splitlines()
    variables = {key: value for key, _, value in (line.partition("=") for line in lines) if key}
    return ImageRoot(Path(store.run("mount", container)), variables)


@pytest.fixture(scope="session")
def drift_image(store: Store) -> ImageRoot:
    return build_image(store, "lakewright")


@pytest.fixture(scope="session")
def spark_image(store: Store) -> ImageRoot:
    return build_image(store, "spark")
