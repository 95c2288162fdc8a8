"""Counts and times of HTTP requests, by the rule that answered and never by the path (CP15)."""

from flask import Flask
from prometheus_client import CollectorRegistry
from prometheus_flask_exporter import PrometheusMetrics


def install(app: Flask, registry: CollectorRegistry) -> None:
    """Measure every request of an app; they are shown on the process's own port, not on the app's.

    Grouped by path, as is the library's default, each record id and stored name would become a
    label, and each unknown address a series of its own.
    """
    PrometheusMetrics(
        app,
        path=None,
        group_by="url_rule",
        defaults_prefix="transcriber",
        registry=registry,
    )
