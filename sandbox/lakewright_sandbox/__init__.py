"""The sandbox: local stand-ins for the cloud, for tests and the demo. No production code imports it.

Each server also runs in a thread of a test, here Lakekeeper:

>>> from tempfile import TemporaryDirectory
>>> import httpx
>>> from lakewright_sandbox.in_process import serve
>>> from lakewright_sandbox.lakekeeper.app import create_app
>>> from lakewright_sandbox.lakekeeper.protocol.settings import Settings
>>> with TemporaryDirectory() as folder:
...     app = create_app(Settings(database=f"sqlite:///{folder}/lakekeeper.db"))
...     with serve(app) as endpoint:
...         httpx.get(f"{endpoint}/management/v1/info").json()["bootstrapped"]
False
"""
