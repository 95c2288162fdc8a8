"""Q03: the same jobs through our queue and through the queues people would pick instead."""
