"""Commands about specs: `new` writes one, `spec` checks and explains them."""
