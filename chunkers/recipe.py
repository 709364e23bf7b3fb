"""The fingerprint of how a file would be cut, without reading it.

What must stay true: equal recipe, path and bytes give equal chunks; so everything that the chunks depend on, but for
path and bytes, is in it.
"""

from __future__ import annotations

import json
from hashlib import blake2b

from ragd.chunkers import assemble, decode, detect, packing
from ragd.chunkers.records import CutSettings, ModelBudget
from ragd.chunkers.registry import PARSER_VERSIONS, STRATEGY_VERSIONS, TYPES, entry_of, strategy_for


def recipe_of(path: bytes, settings: CutSettings, tokenizer_fingerprint: str, budget: ModelBudget) -> str:
    """32 hexadecimal digits. Where the name leaves the type open, every type's versions count."""
    type_name = detect.type_by_name(name_of(path))
    types = [type_name] if type_name is not None else sorted(TYPES)
    how = []
    for name in types:
        parser, strategy = entry_of(name).parser, strategy_for(name, settings.chunker)
        how.append([name, parser, PARSER_VERSIONS[parser], strategy, STRATEGY_VERSIONS[strategy]])
    ingredients = {
        "how": how,
        "decode": decode.VERSION,
        "detect": detect.VERSION,
        "packing": packing.VERSION,
        "assembly": assemble.VERSION,
        "settings": [
            settings.target_tokens,
            settings.max_tokens,
            settings.overlap_ratio,
            settings.prefix,
        ],
        "tokenizer": tokenizer_fingerprint,
        "budget": [budget.max_tokens, budget.instruction],
    }
    text = json.dumps(ingredients, sort_keys=True, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=16).hexdigest()


def name_of(path: bytes) -> str:
    """The file's name without its folder; bytes that are not UTF-8 show as \\xHH."""
    return path.rpartition(b"/")[2].decode("utf-8", "backslashreplace")
