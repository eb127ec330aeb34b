"""The network of a cluster of processes: machines, Services and pods have addresses of their own on one bridge.

It is in the network namespace of the tests (`scripts/isolated.sh`), so nothing of it is visible outside or remains.
"""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

_BRIDGE = "pods"
_ROUTER = "10.231.0.1"


def run_command(*command: str) -> None:
    """Run a command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"


class PodNetwork:
    """One bridge, and the names of its addresses in a file of hosts, which tests and pods read."""

    def __init__(self, hosts: Path) -> None:
        """Make the bridge, and put a file of hosts in the place of this machine's."""
        self.hosts = hosts
        hosts.write_text("127.0.0.1 localhost\n")
        run_command("mount", "--bind", str(hosts), "/etc/hosts")
        # A bridge without an address of its own takes that of a port: pods would lose it when a pod ends.
        run_command("ip", "link", "add", _BRIDGE, "address", "02:00:00:00:00:01", "type", "bridge")
        run_command("ip", "address", "add", f"{_ROUTER}/16", "dev", _BRIDGE)
        run_command("ip", "link", "set", _BRIDGE, "up")
        self._hosts, self._pods = itertools.count(10), itertools.count(2)

    def add_host(self, *names: str) -> str:
        """Return a new address of this machine, which the names resolve to."""
        address = f"10.231.1.{next(self._hosts)}"
        run_command("ip", "address", "add", f"{address}/32", "dev", _BRIDGE)
        with self.hosts.open("a") as file:
            file.write(f"{address} {' '.join(names)}\n")
        return address

    def add_pod(self, name: str) -> str:
        """Make a network namespace with an address of its own, and return the address."""
        number = next(self._pods)
        address, outside = f"10.231.{100 + number // 250}.{2 + number % 250}", f"pod{number}"
        run_command("ip", "netns", "add", name)
        run_command("ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
        run_command("ip", "link", "set", outside, "master", _BRIDGE, "up")
        run_command("ip", "-n", name, "address", "add", f"{address}/16", "dev", "eth0")
        for device in ("eth0", "lo"):
            run_command("ip", "-n", name, "link", "set", device, "up")
        run_command("ip", "-n", name, "route", "add", "default", "via", _ROUTER)
        return address

    def remove_pod(self, name: str) -> None:
        """Remove a network namespace with its connections."""
        run_command("ip", "netns", "delete", name)
