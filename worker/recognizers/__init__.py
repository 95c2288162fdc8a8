"""The speech engines: the contract in port.py, one module for each engine."""
