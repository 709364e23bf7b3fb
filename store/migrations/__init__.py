"""Numbered, append-only SQL files. The catalog's schema is what they make, applied in order."""
