"""Start-up warnings of Spark are left out; all other lines are kept."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from lakewright_spark.cli import startup_warnings

LEFT_OUT = [
    "WARNING: Using incubator modules: jdk.incubator.vector",
    "Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties",
    "26/11/22 05:51:05 WARN Utils: Your hostname, vm, resolves to a loopback address: 127.0.0.1; using 192.0.2.2 "
    "instead (on interface eth0)",
    "26/11/22 05:51:05 WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address",
    "26/11/22 05:51:06 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform... using "
    "builtin-java classes where applicable",
    'Setting default log level to "WARN".',
    "To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).",
    'Setting Spark log level to "ERROR".',
]
KEPT = [
    "26/11/22 05:51:05 WARN Utils: Service 'sparkDriver' could not bind on port 0.",
    "26/11/22 05:51:05 ERROR SparkContext: Error initializing SparkContext.",
    "Exception in thread main: WARNING: Using incubator modules: jdk.incubator.vector",
    "WARNING: something else",
]


@pytest.mark.parametrize("line", LEFT_OUT)
def test_startup_warnings_are_left_out(line: str) -> None:
    assert startup_warnings.is_startup_warning(line.encode())


@pytest.mark.parametrize("line", KEPT)
def test_other_lines_are_kept(line: str) -> None:
    assert not startup_warnings.is_startup_warning(line.encode())


def test_other_lines_of_a_child_keep_their_order(capfd: Any) -> None:
    error_text = "\n".join([*LEFT_OUT, KEPT[0], *LEFT_OUT, *KEPT[1:], "no end of line"])
    with startup_warnings.filter_warnings():
        subprocess.run([sys.executable, "-c", "import sys; sys.stderr.write(sys.argv[1])", error_text], check=True)
    subprocess.run([sys.executable, "-c", "import os; os.write(2, b'\\nafterwards')"], check=True)
    assert capfd.readouterr().err.splitlines() == [*KEPT, "no end of line", "afterwards"]


def test_surviving_child_does_not_block(capfd: Any) -> None:
    with startup_warnings.filter_warnings():
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        os.write(2, b"all of it\n")
    assert capfd.readouterr().err == "all of it\n"
    child.communicate()
