"""A service account of the identity provider, known before it first comes."""

from lakewright.lakekeeper import User

server = {"endpoint": "https://lakekeeper.example.com"}
User("spark", server=server, user_id="oidc~spark-jobs", name="Spark jobs", user_type="application")
