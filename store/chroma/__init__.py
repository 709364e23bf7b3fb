"""Chroma in a process of its own: a crash, a held interpreter lock or a torn index file stays there."""
