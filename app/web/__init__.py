"""The web: pages, the HTTP API and the server they run in."""
