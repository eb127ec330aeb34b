"""What the policies of IAM roles allow beyond a warehouse. The session policies of vended credentials hide it."""
