"""The rules of the policy pack: pure functions on the inputs of resources, free of `pulumi_policy`."""
