"""The whole pipeline: one file's bytes to its chunks.

What must stay true: any bytes give a `Cut`, never an exception; the same bytes, names, settings and tokenizer give
the same `Cut`.
"""

from __future__ import annotations

from ragd.chunkers import decode
from ragd.chunkers.assemble import assemble
from ragd.chunkers.detect import binary_format, generated_reason, type_of
from ragd.chunkers.ids import IdMaker
from ragd.chunkers.limits import limits_of
from ragd.chunkers.recipe import name_of, recipe_of
from ragd.chunkers.records import Cut, CutSettings, Dropped, ModelBudget, SourceFile
from ragd.chunkers.registry import entry_of, parser, strategy, strategy_for
from ragd.chunkers.tokens import TokenCounter

__all__ = ["cut", "recipe_of"]


def cut(source: SourceFile, settings: CutSettings, counter: TokenCounter, budget: ModelBudget) -> Cut:
    """Cut one file. ValueError only for a budget that leaves no room for text (`limits_of`)."""
    limits = limits_of(settings, counter, budget)
    name = name_of(source.path)
    recipe = recipe_of(source.path, settings, counter.fingerprint, budget)
    binary = binary_format(source.data)
    decoded = None if binary else decode.decode(source.data)
    if decoded is None:
        return Cut(
            type=binary or "binary",
            chunker="",
            title=stem_of(name),
            recipe=recipe,
            skipped="binary",
            detail=f"{binary} data" if binary else "not text in any known encoding",
        )
    type_name = type_of(name, decoded.text)
    chunker = strategy_for(type_name, settings.chunker)
    generated = generated_reason(type_name, decoded.text)
    if generated is not None:
        return Cut(
            type=type_name,
            chunker=chunker,
            title=stem_of(name),
            recipe=recipe,
            skipped="generated",
            detail=generated,
            encoding=decoded.encoding,
        )
    document = parser(entry_of(type_name).parser)(decoded.text, name=name)
    maps = decode.canonical(document.text) if document.canonical else decoded
    outline = strategy(chunker)(document, counter, limits)
    title = document.title or stem_of(name)
    ids = IdMaker(source.root, source.path)
    chunks, parents = assemble(document, outline, maps, title, budget.instruction, counter, limits, ids)
    warnings = list(document.warnings)
    if settings.chunker not in ("auto", chunker):
        warnings.append(f"chunker {settings.chunker!r} is not made for {type_name}: {chunker!r} was used")
    return Cut(
        type=type_name,
        chunker=chunker,
        title=title,
        recipe=recipe,
        language=document.language,
        encoding=decoded.encoding,
        chunks=chunks,
        parents=parents,
        dropped=tuple(
            Dropped((maps.byte_at(start), maps.byte_at(end)), reason) for start, end, reason in document.dropped
        ),
        metadata=document.metadata,
        canonical_text=maps.text if document.canonical else None,
        warnings=tuple(warnings),
    )


def stem_of(name: str) -> str:
    """The file's name without its last extension; a name that is all extension stays whole."""
    stem, dot, _ = name.rpartition(".")
    return stem if dot and stem else name
