"""All that is kept and all that is found: catalog, vector cache, Chroma, embedder, commit protocol, search."""
