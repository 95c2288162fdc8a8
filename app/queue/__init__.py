"""The queue: the contract in port.py, its SQLite form in sqlite.py."""
