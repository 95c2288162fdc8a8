"""The converter: a child process that turns any recording into 16 kHz mono WAV."""
