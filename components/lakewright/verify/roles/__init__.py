"""Find rights of IAM roles beyond a warehouse. The session policies of vended credentials hide them."""
