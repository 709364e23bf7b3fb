"""A few files of a made-up allotment garden, for a first try of ragd."""
