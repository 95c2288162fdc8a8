"""Q01-Q07: the queue beside its disk, and beside the queues people would pick instead."""
