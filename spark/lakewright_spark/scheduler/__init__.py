"""The maintenance scheduler: what is due on which table, run in one Spark application, one runner a warehouse."""
