"""Remote signing: the catalog signs clients' requests to S3."""
