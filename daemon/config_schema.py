"""The schema of the configuration: every key, its type, its default and the sentence that explains it.

What must stay true: a default stands here and nowhere else; the example file, `ragd config show` and the
messages about wrong keys are made from these classes. Strict: a number in quotes is not a number.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from ragd.chunkers.records import CutSettings

_CHUNKING = CutSettings()


def _strings(value: Any) -> Any:
    """TOML has lists; what is kept is a tuple. Anything else is left for the type check to refuse."""
    return tuple(value) if isinstance(value, list) else value


def _not_a_number(value: Any) -> Any:
    """1 equals True, and is not meant by it."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise PydanticCustomError("literal_error", "", {"expected": "'auto', True or False"})
    return value


Strings = Annotated[tuple[str, ...], BeforeValidator(_strings)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class StoreSection(Section):
    """Where the index is kept."""

    path: str = Field(default="", description='The state folder; "" is ragd/ in your data directory.')
    chroma: Literal["embedded"] = Field(
        default="embedded", description='Where Chroma runs: "embedded", a child process of ragd.'
    )
    documents: bool = Field(
        default=False,
        description="Also keep the texts in Chroma, for other programs that read it (about 20 KB a chunk).",
    )


class EmbeddingSection(Section):
    """The embedding model."""

    model: str = Field(
        default="all-MiniLM-L6-v2",
        min_length=1,
        description="A sentence-transformers model: a name, or a local folder. The default comes with ragd.",
    )
    backend: Literal["auto", "sentence-transformers"] = Field(default="auto", description="What runs the model.")
    precision: Literal["fp32"] = Field(default="fp32", description="Precision of the weights.")
    device: str = Field(default="cpu", min_length=1, description='"cpu", "cuda", "cuda:1" or "mps".')
    batch_tokens: int = Field(
        default=2048,
        ge=256,
        le=1_048_576,
        description="Tokens of one batch, padding included; bounds the memory.",
    )
    threads: int = Field(default=0, ge=0, le=1024, description="Threads of the model; 0 is [limits] cpu_threads.")
    query_prompt: str | None = Field(
        default=None, description="Text put before a query; without this key the model's own."
    )
    document_prompt: str | None = Field(
        default=None, description="Text put before a chunk; without this key the model's own."
    )
    offline: bool = Field(
        default=False, description="Never download a model: one that is not on this machine is an error."
    )


class ChunkingKeys(Section):
    """The keys of [chunking], none of them required: a table that overrides some of them."""

    chunker: str | None = Field(
        default=None, min_length=1, description='How files are cut; "auto" chooses by the type of the file.'
    )
    target_tokens: int | None = Field(
        default=None,
        ge=1,
        le=32_768,
        description="Wanted size of a chunk, in tokens of the model; never more than the model takes.",
    )
    max_tokens: int | None = Field(
        default=None, ge=1, le=32_768, description="No chunk is larger, in tokens of the model."
    )
    overlap_ratio: float | None = Field(
        default=None,
        ge=0.0,
        le=0.5,
        allow_inf_nan=False,
        description="Share of target_tokens repeated from the chunk before; 0.1 to 0.15 is usual.",
    )
    prefix: bool | None = Field(default=None, description="Embed title and section path in front of each chunk.")


class ChunkingSection(ChunkingKeys):
    """How files are cut. A table such as [chunking.markdown] overrides keys for one type of file.
    Where only one of target_tokens and max_tokens is set, the other one follows it."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, ChunkingKeys] = Field(init=False)

    @property
    def types(self) -> dict[str, ChunkingKeys]:
        """The [chunking.TYPE] tables, by type."""
        return self.__pydantic_extra__ or {}


class WatchSection(Section):
    """How changes are noticed."""

    debounce_ms: int = Field(
        default=300, ge=0, le=600_000, description="A path is looked at when it was quiet for so long."
    )
    max_delay_ms: int = Field(
        default=5_000, ge=0, le=3_600_000, description="It is looked at after so long, however busy it is."
    )
    poll: Annotated[Literal["auto", True, False], BeforeValidator(_not_a_number)] = Field(
        default="auto",
        description='Walk again and again instead of watching: "auto" does so where watching does not work.',
    )
    poll_seconds: int = Field(default=30, ge=1, le=86_400, description="Pause between two such walks.")


class ScheduleSection(Section):
    """Timers: an interval ("90s", "15m", "6h", "1d"), a cron expression ("0 3 * * *", local time), or
    "off"."""

    walk: str = Field(default="15m", description="A full walk of every root: the truth, whatever the watching missed.")
    retry: str = Field(default="5m", description="Try again what failed for a cause that may have passed.")


class ServerSection(Section):
    """How the daemon is asked. The socket serves your own commands; the port needs the token."""

    host: str = Field(default="127.0.0.1", min_length=1, description="A loopback address.")
    port: int = Field(default=8420, ge=0, le=65_535, description="0 takes any free port.")
    socket: str = Field(default="", description='Path of the unix socket; "" is ragd.sock in the state folder.')
    token_file: str = Field(
        default="",
        description='The file with the bearer token, made when missing; "" is token in the state folder.',
    )


class LimitsSection(Section):
    """What a file and the daemon may use."""

    max_file_mb: float = Field(
        default=20.0, gt=0, le=4096, allow_inf_nan=False, description="Larger files are skipped (too_large)."
    )
    parse_seconds: float = Field(
        default=60.0,
        gt=0,
        le=86_400,
        allow_inf_nan=False,
        description="Time to parse one file; then it has failed (timeout).",
    )
    parse_memory_mb: int = Field(
        default=1024, ge=64, le=1_048_576, description="Memory to parse one file; then it has failed (memory)."
    )
    cpu_threads: int = Field(default=0, ge=0, le=1024, description="Cores to work with; 0 is all of them.")
    niceness: int = Field(default=10, ge=0, le=19, description="How far the daemon stands back for other programs.")


class RuleTable(ChunkingKeys):
    """A rule for some files of the root: any key of [chunking]. Of the rules that match a file, a later one
    wins."""

    glob: str = Field(min_length=1, description="Which files, as in .gitignore, from the root.")


class RootTable(Section):
    """A folder to index."""

    path: str = Field(min_length=1, description="The folder. ~ and $VARIABLES are expanded.")
    name: str | None = Field(default=None, description="What it is called in answers; default the folder's name.")
    labels: Strings = Field(default=(), description="Labels of all its files, to filter by.")
    include: Strings = Field(default=(), description="Only files that match one of these, written as in .gitignore.")
    exclude: Strings = Field(default=(), description="No files or folders that match one of these.")
    follow_symlinks: bool = Field(default=False, description="Also index what symbolic links to files point to.")
    gitignore: bool = Field(default=True, description="Leave out what git ignores.")
    rule: Annotated[tuple[RuleTable, ...], BeforeValidator(_strings)] = Field(
        default=(), description="Rules for some of its files."
    )


class SearchSection(Section):
    """What `ragd search` does when it is not told otherwise."""

    mode: Literal["hybrid", "dense", "lexical"] = Field(
        default="hybrid",
        description="By meaning and by words, by meaning alone (dense), by words alone (lexical).",
    )
    k: int = Field(default=5, ge=1, le=100, description="Number of hits.")


class Settings(Section):
    """The whole file."""

    store: StoreSection = StoreSection()
    embedding: EmbeddingSection = EmbeddingSection()
    chunking: ChunkingSection = ChunkingSection()
    watch: WatchSection = WatchSection()
    schedule: ScheduleSection = ScheduleSection()
    server: ServerSection = ServerSection()
    limits: LimitsSection = LimitsSection()
    search: SearchSection = SearchSection()
    root: Annotated[tuple[RootTable, ...], BeforeValidator(_strings)] = ()


CHUNKING_DEFAULTS: dict[str, Any] = {
    "chunker": _CHUNKING.chunker,
    "target_tokens": _CHUNKING.target_tokens,
    "max_tokens": _CHUNKING.max_tokens,
    "overlap_ratio": _CHUNKING.overlap_ratio,
    "prefix": _CHUNKING.prefix,
}
"""The defaults of [chunking] are those of the record the chunkers work by."""

NOT_YET: dict[str, frozenset[str]] = {
    "store": frozenset({"tenant", "database", "headers_file"}),
    "chunking": frozenset({"window_tokens", "mask_secrets"}),
    "schedule": frozenset({"compact", "verify"}),
    "server": frozenset({"client"}),
    "root.rule": frozenset({"labels", "window_tokens", "mask_secrets"}),
    "search": frozenset({"rerank_model"}),
}
"""Keys of a later version, by table: refused like any unknown key, but by name."""

NOT_YET_VALUES: dict[str, tuple[str, ...]] = {
    "embedding.backend": ("onnx",),
    "embedding.precision": ("int8",),
    "store.chroma": ("http://", "https://"),
}
"""Values of a later version, by key; a text that begins with one of them is meant."""
