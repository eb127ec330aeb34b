"""A script that writes and reads on the executors of a cluster, then kills a worker in the middle of a job.

Arguments: the worker's process group, and the stage in which it dies: `shuffle` or `write`.
"""

import json
import os
import signal
import sys
import threading
import time

from lakewright_spark.run.context import current
from pyspark.sql import functions as f

ROWS, PARTS = 60_000, 12

worker, stage = int(sys.argv[1]), sys.argv[2]
run = current()
spark = run.spark
tracker = spark.sparkContext.statusTracker()


PROCESS = f.expr("java_method('java.lang.ProcessHandle', 'current')")


def executors():
    return len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1  # the driver is among them


report = {"rows": ROWS, "executors_before": executors()}
report["driver"] = spark._jvm.java.lang.ProcessHandle.current().toString()
uri = run.write("Computed-1", spark.range(0, 1000, 1, PARTS).select("id", PROCESS.alias("who")))
pairs = run.read(uri).select("who", PROCESS.alias("reader")).distinct().collect()
report["computed_by"], report["read_by"] = ([pair[n] for pair in pairs] for n in (0, 1))


def kill_in_the_middle():
    while True:
        for number in tracker.getActiveStageIds():
            info = tracker.getStageInfo(number)
            if info is None or info.numTasks != (PARTS if stage == "write" else PARTS + 1):
                continue
            if info.numCompletedTasks >= 3 and info.numActiveTasks:
                os.killpg(worker, signal.SIGKILL)
                report["killed_after"] = [info.numCompletedTasks, info.numTasks]
                return
        time.sleep(0.02)


killer = threading.Thread(target=kill_in_the_middle, daemon=True)
killer.start()
# The shuffle data of the killed executor is lost and must be computed again.
heavy = spark.range(0, ROWS, 1, PARTS + 1).selectExpr("id", "sha2(repeat(cast(id AS string), 50), 512) AS hash")
uri = run.write("Survived-1", heavy.repartition(PARTS, "id"))
killer.join(60)
report["executors_after"] = executors()
assert run.read(uri).agg(f.count("*"), f.count_distinct("id"), f.sum("id")).collect()[0] == (
    ROWS,
    ROWS,
    ROWS * (ROWS - 1) // 2,
)
print(json.dumps(report))
