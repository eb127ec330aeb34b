"""The maintenance scheduler: run due jobs of tables in one Spark application, with one runner per warehouse."""
