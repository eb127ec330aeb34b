"""The engines that carry out preview, up, refresh and destroy, and what is checked around them."""
