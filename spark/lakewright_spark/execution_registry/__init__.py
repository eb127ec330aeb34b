"""Who ran what where: executions and the results that they wrote, in a database of the platform's. No CU needs it."""
