"""A service account of the identity provider, declared before its first login."""

from lakewright.lakekeeper import User

server = {"endpoint": "https://lakekeeper.example.com"}
User("spark", server=server, user_id="oidc~spark-jobs", name="Spark jobs", user_type="application")
