"""Records of changes to the sandbox's AWS, in the format of CloudTrail."""
