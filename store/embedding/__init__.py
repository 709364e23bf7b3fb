"""Texts to vectors: where the model is, what it is, and the model itself."""
