"""Running a user's PySpark script as one execution. What the script has of it is in `context`."""
