"""The commit protocol on the memory index: what is written, what is left alone, what survives a failure."""

from __future__ import annotations

from store_kit import Embedder, House, assert_consistent, index_file, forget, texts_of


def test_a_file_is_written_everywhere(house: House) -> None:
    store, embedder = house.open(), Embedder()
    outcome = store.commit([index_file(["one", "two"])], embedder)
    assert (outcome.added, outcome.kept, outcome.removed, outcome.texts_embedded) == (2, 0, 0, 2)
    assert texts_of(store) == {("notes", b"a.md"): ["one", "two"]}
    assert_consistent(house, store)
    outcome = store.commit([index_file(["one", "two"], b"b.md"), forget()], embedder)
    assert (outcome.added, outcome.removed, outcome.texts_embedded) == (2, 2, 0)
    assert_consistent(house, store)
    store.close()
