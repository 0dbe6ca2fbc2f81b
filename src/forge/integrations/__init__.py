"""Integrations with other libraries; each module names the extra it requires."""
