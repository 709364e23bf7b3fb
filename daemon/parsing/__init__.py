"""Parsing in child processes under limits: a hostile or huge file cannot hurt the daemon."""
