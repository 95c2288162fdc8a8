"""The `pisar` command: one module for each group of commands."""
