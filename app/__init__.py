"""Pisar, the application: queue, storage, intake, accounts and the web."""
