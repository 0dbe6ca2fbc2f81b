"""How word that there is work reaches a worker, where PostgreSQL does not carry it itself."""
