"""Which languages the names of source and configuration files stand for.

Must stay true: loading this loads no grammar.
"""

from __future__ import annotations

GRAMMAR_LANGUAGES: dict[str, str] = {
    "python": "py pyi pyw",
    "javascript": "js mjs cjs jsx es6",
    "typescript": "ts mts cts tsx",
    "java": "java",
    "go": "go",
    "rust": "rs",
    "c": "c h",
    "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp inl tcc cu cuh",
}
"""Languages there is a grammar for, with the extensions of their files."""

LAYOUT_LANGUAGES: dict[str, str] = {
    "ada": "adb ads",
    "assembly": "asm s",
    "awk": "awk",
    "batch": "bat cmd",
    "clojure": "clj cljs cljc edn",
    "cmake": "cmake",
    "cobol": "cob cbl cpy",
    "config": "cfg conf cnf env properties editorconfig service timer socket desktop",
    "crystal": "cr",
    "csharp": "cs csx",
    "css": "css scss sass less styl",
    "cython": "pyx pxd pxi",
    "d": "d",
    "dart": "dart",
    "diff": "diff patch",
    "dockerfile": "dockerfile containerfile",
    "elixir": "ex exs heex",
    "elm": "elm",
    "erlang": "erl hrl",
    "fortran": "f for f77 f90 f95 f03 f08",
    "fsharp": "fs fsi fsx",
    "gdscript": "gd",
    "glsl": "glsl vert frag wgsl hlsl",
    "graphql": "graphql gql",
    "groovy": "groovy gradle",
    "haskell": "hs lhs",
    "hcl": "hcl tf tfvars",
    "ini": "ini",
    "json": "json json5 jsonc geojson webmanifest",
    "julia": "jl",
    "kotlin": "kt kts",
    "lisp": "lisp lsp el scm rkt",
    "lua": "lua",
    "makefile": "mk mak make",
    "matlab": "m mm",
    "nim": "nim",
    "nix": "nix",
    "ocaml": "ml mli",
    "pascal": "pas pp dpr",
    "perl": "pl pm pod",
    "php": "php phtml",
    "powershell": "ps1 psm1 psd1",
    "prolog": "pro prolog",
    "protobuf": "proto",
    "puppet": "epp",
    "r": "r",
    "ruby": "rb rake gemspec ru erb",
    "scala": "scala sc sbt",
    "shell": "sh bash zsh fish csh ksh",
    "solidity": "sol",
    "sql": "sql ddl",
    "svelte": "svelte",
    "swift": "swift",
    "tcl": "tcl",
    "thrift": "thrift",
    "toml": "toml",
    "verilog": "v sv svh",
    "vhdl": "vhd vhdl",
    "vim": "vim",
    "visualbasic": "vb bas vbs",
    "vue": "vue",
    "xml": "xml xsl xslt xsd plist rss atom svg",
    "yaml": "yaml yml",
    "zig": "zig",
}
"""Languages and formats that are cut by their layout, with the extensions of their files."""

NAMES: dict[str, str] = {
    "bashrc": "shell",
    "brewfile": "ruby",
    "cmakelists.txt": "cmake",
    "containerfile": "dockerfile",
    "dockerfile": "dockerfile",
    "gemfile": "ruby",
    "gnumakefile": "makefile",
    "jenkinsfile": "groovy",
    "justfile": "makefile",
    "makefile": "makefile",
    "podfile": "ruby",
    "procfile": "config",
    "rakefile": "ruby",
    "vagrantfile": "ruby",
    ".bashrc": "shell",
    ".profile": "shell",
    ".zshrc": "shell",
    ".vimrc": "vim",
    ".gitconfig": "config",
    ".gitignore": "config",
    ".gitattributes": "config",
    ".dockerignore": "config",
    ".editorconfig": "config",
}
"""Files whose whole name, in lower case, tells the language."""

INTERPRETERS: dict[str, str] = {
    "awk": "awk",
    "bash": "shell",
    "dash": "shell",
    "deno": "typescript",
    "fish": "shell",
    "gawk": "awk",
    "groovy": "groovy",
    "julia": "julia",
    "ksh": "shell",
    "lua": "lua",
    "make": "makefile",
    "node": "javascript",
    "nodejs": "javascript",
    "perl": "perl",
    "php": "php",
    "pwsh": "powershell",
    "pypy": "python",
    "python": "python",
    "rscript": "r",
    "ruby": "ruby",
    "sh": "shell",
    "tclsh": "tcl",
    "zsh": "shell",
}
"""What a script's first line names after `#!`, without version digits."""

LANGUAGE_BY_EXTENSION: dict[str, str] = {
    extension: language
    for table in (GRAMMAR_LANGUAGES, LAYOUT_LANGUAGES)
    for language, extensions in table.items()
    for extension in extensions.split()
}
"""Extension in lower case -> language."""


def language_by_name(name: str) -> str | None:
    """The language of a file by its name without its folder, or None."""
    lower = name.lower()
    if lower in NAMES:
        return NAMES[lower]
    stem, dot, extension = lower.rpartition(".")
    if dot and extension in LANGUAGE_BY_EXTENSION:
        return LANGUAGE_BY_EXTENSION[extension]
    return NAMES.get(stem.partition(".")[0] if dot else lower) if lower.startswith("dockerfile.") else None
