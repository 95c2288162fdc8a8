"""The long forms of Q20 and Q24: what must hold for ten minutes of killing and of crowding."""
