"""A CronJob that checks the fleet for drift, where no CI does it."""
