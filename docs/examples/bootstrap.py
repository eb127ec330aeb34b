"""Accept the terms of use of a server that nobody has bootstrapped."""

from lakewright.lakekeeper import Bootstrap

Bootstrap("lakekeeper", server={"endpoint": "https://lakekeeper.example.com"}, accept_terms_of_use=True)
