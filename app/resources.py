"""Where the product's own files lie: templates, static files, migrations, translations."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "templates"
STATIC = ROOT / "static"
MIGRATIONS = ROOT / "migrations"
TRANSLATIONS = ROOT / "translations"
