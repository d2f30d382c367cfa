"""Superset configuration for one local user, with metadata in SQLite and no other services."""

import os
from pathlib import Path

SECRET_KEY = os.environ["SUPERSET_SECRET_KEY"]
SQLALCHEMY_DATABASE_URI = f"sqlite:///{Path(os.environ['SUPERSET_HOME'], 'superset.db')}"
# Dataset queries use the dashboard's filters.
FEATURE_FLAGS = {"ENABLE_TEMPLATE_PROCESSING": True}
# Superset listens on loopback only, so it needs neither CSRF protection nor HTTPS.
WTF_CSRF_ENABLED = False
TALISMAN_ENABLED = False
RATELIMIT_ENABLED = False
