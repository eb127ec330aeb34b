"""Run a user's PySpark script as one execution. The script uses `context`."""
