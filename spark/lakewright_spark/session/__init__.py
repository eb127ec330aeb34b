"""Spark sessions built from a CatalogConfig: properties, jars, truststore, secrets."""
