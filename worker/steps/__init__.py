"""The steps: what a worker does with a job in each of its active states."""
