"""What the API looks like on the wire: requests, responses, errors, versions; settings and clock of the server."""
