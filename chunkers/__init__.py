"""Bytes in, chunks out.

Everything in this room is pure: no file access, no clock, no threads, no network, no configuration file.
"""
