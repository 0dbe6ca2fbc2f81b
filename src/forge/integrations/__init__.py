"""Forge beside other libraries; each module needs the extra that its first line names."""
