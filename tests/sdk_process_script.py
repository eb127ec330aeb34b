"""Script of `sdk_process`: import Pulumi's SDK, then fork a fork server of the engine for each request.

Its arguments are the descriptor of a socket and the file of the fork server's script. A request comes with two
descriptors: the socket of the fork server, and its standard error. The response is the process id.
"""

import importlib.util
import os
import signal
import socket
import sys
import traceback
from types import ModuleType


def main(descriptor: int, host_file: str) -> None:
    del sys.path[0]  # the folder of this script, which no program may import from
    spec = importlib.util.spec_from_file_location("forkserver_host", host_file)
    assert spec is not None
    assert spec.loader is not None
    host = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(host)
    host._import_sdk()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    requests = socket.socket(fileno=descriptor)
    while True:
        server, error = receive_descriptors(requests)
        pid = os.fork()
        if pid == 0:
            serve(host, requests, server, error)
        os.close(server)
        os.close(error)
        requests.sendall(str(pid).encode())


def receive_descriptors(requests: socket.socket) -> tuple[int, int]:
    data, descriptors, _, _ = socket.recv_fds(requests, 100, 2)
    if not data:
        sys.exit(0)
    return descriptors[0], descriptors[1]


def serve(host: ModuleType, requests: socket.socket, server: int, error: int) -> None:
    try:
        parent = os.getppid()
        requests.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.dup2(error, 2)
        os.close(error)
        host.main(server, parent)
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the process ends: any error is printed
        traceback.print_exc()
    finally:
        os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
