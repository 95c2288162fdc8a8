"""The worker process: claims jobs and carries them through their steps."""
