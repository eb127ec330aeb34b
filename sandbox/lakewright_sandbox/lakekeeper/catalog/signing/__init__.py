"""Remote signing: requests to S3 that clients have signed by the catalog."""
