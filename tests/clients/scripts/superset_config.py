"""Superset configuration for one local user: metadata in SQLite and no other services."""

import os
from pathlib import Path

SECRET_KEY = os.environ["SUPERSET_SECRET_KEY"]
SQLALCHEMY_DATABASE_URI = f"sqlite:///{Path(os.environ['SUPERSET_HOME'], 'superset.db')}"
# The dashboard's filters go into the queries of its datasets.
FEATURE_FLAGS = {"ENABLE_TEMPLATE_PROCESSING": True}
# Loopback only: nobody else sends requests, and nothing asks for HTTPS.
WTF_CSRF_ENABLED = False
TALISMAN_ENABLED = False
RATELIMIT_ENABLED = False
