"""How a file would be cut, without indexing it.

What must stay true: the ids are those that would be stored, when the file is under a root; nothing is kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ragd.chunkers.records import Cut, CutSettings, ModelBudget, SourceFile
from ragd.daemon.backend import Answer
from ragd.daemon.config_roots import merge_chunking
from ragd.daemon.config_schema import ChunkingKeys
from ragd.daemon.errors import NotFoundError, UsageError
from ragd.daemon.files import paths
from ragd.daemon.files.read import NotRead, read_file
from ragd.daemon.files.roots import RootRules, owner

if TYPE_CHECKING:
    from ragd.daemon.config import Config


def preview_source(config: Config, path: str) -> tuple[SourceFile, CutSettings]:
    """The file at an absolute path as the chunkers get it, and the settings that hold for it. A file outside
    all roots gets its folder as one, a symbolic link is what it points to. Raises NotFoundError,
    UsageError."""
    raw = os.fsencode(os.path.realpath(path) if os.path.islink(path) else path)
    rules = [RootRules(name=root.name, path=os.fsencode(root.path)) for root in config.roots]
    folder, name = os.path.split(raw)
    alone = RootRules(name=paths.show(os.path.basename(folder)) or "root", path=folder)
    owning, rel_path = owner(raw, rules) or (alone, name)
    read = read_file(owning, rel_path, int(config.limits.max_file_mb * 1_000_000))
    if isinstance(read, NotRead):
        if read.code == "gone":
            raise NotFoundError(f"There is no file {path}.")
        raise UsageError(f"{path} cannot be read ({read.code}): {read.detail}")
    root = next((root for root in config.roots if owning is not alone and root.name == owning.name), None)
    return SourceFile(read.data, owning.name, rel_path), config.cut_settings(root, rel_path)


def with_wishes(settings: CutSettings, chunker: str | None, keys: Mapping[str, Any]) -> CutSettings:
    """The settings with `--chunker` and `--set` over them. Raises UsageError with every problem."""
    from pydantic import ValidationError

    from ragd.chunkers.registry import chunker_names
    from ragd.daemon.config_problems import near_value, schema_problems

    wishes = {**keys, **({"chunker": chunker} if chunker is not None else {})}
    base = ChunkingKeys(
        chunker=settings.chunker,
        target_tokens=settings.target_tokens,
        max_tokens=settings.max_tokens,
        overlap_ratio=settings.overlap_ratio,
        prefix=settings.prefix,
    )
    try:
        layer = ChunkingKeys.model_validate(wishes)
    except ValidationError as error:
        problems = schema_problems(error, wishes, ("chunking",))
        lines = [f"{problem.place[-1]}: {problem.message}" for problem in problems]
        raise UsageError("These settings cannot be used.", problems=lines) from error
    if layer.chunker is not None and layer.chunker not in chunker_names():
        raise UsageError(f'There is no chunker "{layer.chunker}"{near_value(layer.chunker, chunker_names())}')
    return merge_chunking([base, layer])


def budget_of(max_tokens: int, document_prompt: str) -> ModelBudget:
    """What the model takes of a chunk."""
    return ModelBudget(max_tokens=max_tokens, instruction=document_prompt)


def preview_answer(path: str, cut: Cut) -> Answer:
    """The answer of `preview` in the fields of the outer contract."""
    answer: Answer = {
        "path": path,
        "type": cut.type,
        "chunker": cut.chunker,
        "title": cut.title,
        "skipped": cut.skipped,
        "detail": cut.detail,
        "language": cut.language,
        "encoding": cut.encoding,
        "chunks": [
            {
                "id": chunk.id,
                "kind": chunk.kind,
                "section": list(chunk.section),
                "text": chunk.text,
                "embedded_text": chunk.embedded_text,
                "prefix": chunk.prefix,
                "overlap": chunk.overlap,
                "spans": [list(span) for span in chunk.spans],
                "overlap_spans": [list(span) for span in chunk.overlap_spans],
                "start_line": chunk.start_line,
                "end_line": chunk.end_line,
                "page": chunk.page,
                "locator": chunk.locator,
                "tokens": chunk.tokens,
                "parent": chunk.parent,
                "language": chunk.language,
                "symbol": chunk.symbol,
            }
            for chunk in cut.chunks
        ],
        "dropped": [{"span": list(dropped.span), "reason": dropped.reason} for dropped in cut.dropped],
        "warnings": list(cut.warnings),
        "metadata": cut.metadata,
    }
    if cut.canonical_text is not None:
        answer["canonical_text"] = cut.canonical_text
    return answer
