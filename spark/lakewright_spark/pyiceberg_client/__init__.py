"""PyIceberg catalogs opened from a CatalogConfig: clients, authentication, errors, table policies."""
