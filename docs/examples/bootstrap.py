"""Bootstrap a new server and accept its terms of use."""

from lakewright.lakekeeper import Bootstrap

Bootstrap("lakekeeper", server={"endpoint": "https://lakekeeper.example.com"}, accept_terms_of_use=True)
