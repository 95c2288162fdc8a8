"""What `pisar check` asks of the worker's side: `python -m worker.checkup` tells in JSON lines."""

import json
import sys
from collections.abc import Callable

import av

from app.errors import AppError
from app.settings import Settings, load
from worker import sandbox
from worker.recognizers import model

Finding = dict[str, str]


def main() -> int:
    """Tell how the converter and the recognizer fare; gives the exit code."""
    settings = load()
    for examine in _EXAMINATIONS:
        sys.stdout.write(json.dumps(examine(settings)) + "\n")
    return 0


def _converter(settings: Settings) -> Finding:
    libraries = ".".join(str(part) for part in av.library_versions["libavformat"])
    return _finding("converter", "ok", f"PyAV {av.__version__} with libavformat {libraries}")


def _confinement(settings: Settings) -> Finding:
    offers = sandbox.describe()
    missing = [
        words
        for words, is_there in (
            ("keep it from other files", offers.files),
            ("keep it from the network", offers.network),
        )
        if not is_there
    ]
    if missing:
        words = f"this kernel cannot {' nor '.join(missing)}"
        mend = "a newer kernel with Landlock and seccomp can; else take in only what you trust"
        return _finding("converter's rights", "note", words, mend)
    words = "kept from the network and from all files but its own"
    return _finding("converter's rights", "ok", words)


def _recognizer(settings: Settings) -> Finding:
    try:
        found = model.find(settings)
        found.prepare()
    except AppError as error:
        mend = "install anew: make install"
        if settings.recognizer.model_dir is not None:
            mend = "let recognizer.model_dir name a folder with a CTranslate2 Whisper model"
        return _finding("recognizer", "broken", error.detail or error.message, mend)
    words = f"{found.label}, {len(found.languages)} languages, digest {found.digest[:12]}"
    return _finding("recognizer", "ok", words)


def _finding(subject: str, verdict: str, words: str, mend: str = "") -> Finding:
    return {"subject": subject, "verdict": verdict, "words": words, "mend": mend}


_EXAMINATIONS: tuple[Callable[[Settings], Finding], ...] = (_converter, _confinement, _recognizer)


if __name__ == "__main__":
    sys.exit(main())
