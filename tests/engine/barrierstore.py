"""File objects whose creation waits until `TOGETHER` of them are in creation."""

import os
import threading

import filestore
from pulumi.dynamic import Resource

_together = threading.Barrier(int(os.environ.get("TOGETHER", "1")), timeout=60)


class BarrierProvider(filestore.FileProvider):
    def create(self, props):
        _together.wait()
        return super().create(props)


class File(Resource, module="store", name="File"):
    def __init__(self, name, path, content, opts=None):
        super().__init__(BarrierProvider(), name, {"path": path, "content": content, "etag": None}, opts)
