"""A Lakekeeper-compatible server on FastAPI and a SQL database."""
