"""Folders that are still there after a power cut: a new name lasts once its folder is synced."""

import os
from pathlib import Path


def make(folder: Path, mode: int = 0o777) -> None:
    """Make a folder, and those above it that are missing, durably; harmless when it is there."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make(folder.parent, mode)
    folder.mkdir(mode, exist_ok=True)
    sync(folder.parent)


def sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
