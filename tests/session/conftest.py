"""Fixtures of the session's tests."""

from session_fixtures import *  # noqa: F403
