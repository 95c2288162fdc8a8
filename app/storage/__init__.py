"""Where the bytes lie: the contract in port.py, the local disk in local.py."""
