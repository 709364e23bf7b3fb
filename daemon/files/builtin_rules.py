"""What nobody wants in an index, and what must not be in it: the built-in list.

What must stay true: a person's own folders are never lost to a common word. Folders are left out by name only
where the name has one meaning (`node_modules`); `build`, `dist`, `target`, `venv` or `vendor` only by a
marker inside or by the person's own ignore files. Names are compared in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

VERSION_CONTROL = frozenset(b".git .hg .svn .bzr _darcs .jj .pijul".split())

DEPENDENCIES = frozenset(
    b"node_modules bower_components jspm_packages elm-stuff __pycache__ __pypackages__ .venv .tox .nox"
    b" .eggs .mypy_cache .pytest_cache .ruff_cache .hypothesis .ipynb_checkpoints .gradle .terraform"
    b" .next .nuxt .svelte-kit .angular .parcel-cache .turbo .cache .npm .pnpm-store .dart_tool"
    b" .stack-work .direnv .serverless .aws-sam .vs .idea .obsidian .trash .import-linter_cache .rustup"
    b" .nvm .pyenv .rbenv .bundle .ccache".split()
)

SYSTEM_FOLDERS = frozenset(
    b".trashes $recycle.bin .spotlight-v100 .fseventsd .temporaryitems .documentrevisions-v100"
    b" .stversions .stfolder .dropbox.cache @eadir lost+found .snapshots .apdisk".split()
) | {b"system volume information"}

IGNORED_FOLDERS = VERSION_CONTROL | DEPENDENCIES | SYSTEM_FOLDERS

SECRET_FOLDERS = frozenset(b".ssh .gnupg .aws .azure .kube .password-store .gcloud .keychain .pki".split())

SYSTEM_FILES = frozenset(
    b".ds_store .localized .apdisk thumbs.db ehthumbs.db ehthumbs_vista.db desktop.ini".split()
) | {b"icon\r"}

MEDIA_AND_BINARIES = frozenset(
    # images
    b"png jpg jpeg jpe gif bmp ico icns webp avif heic heif tif tiff psd xcf raw cr2 cr3 nef arw dng"
    b" orf"
    # sound and film
    b" mp3 wav flac ogg oga opus m4a aac wma aiff mid midi mp4 m4v mkv avi mov webm wmv flv mpg mpeg"
    b" 3gp ogv"
    # archives, packages, disk images
    b" zip tar gz tgz bz2 tbz2 xz txz zst lz4 lzma 7z rar cab jar war ear whl egg apk ipa deb rpm msi"
    b" dmg iso img vmdk vdi qcow2 vhd vhdx appimage crx xpi"
    # compiled
    b" exe dll so dylib o obj lib a class pyc pyo pyd wasm elc beam rlib pdb nupkg"
    # databases and arrays
    b" sqlite sqlite3 sqlite-wal sqlite-shm sqlite-journal db db3 db-wal db-shm db-journal mdb accdb"
    b" ldb sst parquet feather arrow npy npz h5 hdf5 pkl pickle safetensors pt pth ckpt onnx gguf ggml"
    b" tflite tfrecord"
    # fonts
    b" ttf otf ttc woff woff2 eot pfb".split()
)

LEFTOVER_EXTENSIONS = frozenset(
    b"tmp temp swp swo swn part partial crdownload download opdownload filepart kate-swp autosave asv".split()
)

SECRET_FILES = frozenset(
    b".netrc _netrc .git-credentials .pgpass .my.cnf .npmrc .pypirc .htpasswd .dockercfg"
    b" .dockerconfigjson .s3cfg .boto .vault-token .authinfo .fetchmailrc .msmtprc .envrc .bash_history"
    b" .zsh_history .sh_history .python_history .psql_history .mysql_history .node_repl_history"
    b" .sqlite_history .rediscli_history credentials credentials.json credentials.csv credentials.yaml"
    b" credentials.yml credentials.toml credentials.ini token.json oauth_token.json"
    b" application_default_credentials.json serviceaccountkey.json key3.db key4.db logins.json"
    b" signons.sqlite cookies.sqlite cookies.sqlite-wal cookies cookies-journal cookies.db cookies.txt"
    b" wallet.dat master.key".split()
) | {b"login data", b"login data for account", b"web data"}

SECRET_EXTENSIONS = frozenset(
    b"pem key p12 pfx ppk jks keystore kdbx kdb keychain keychain-db agilekeychain opvault gpg pgp"
    b" ovpn tfstate tfvars mobileprovision jceks bks htpasswd".split()
)

SECRET_PLACES = frozenset({(b".docker", b"config.json"), (b"gcloud", b"access_tokens.db"), (b"gh", b"hosts.yml")})
"""(folder, file): names that are secrets only there."""

_SECRET_NAME = re.compile(
    rb"""(?x) \.env (?: \. (?! (?:example|sample|template|dist|defaults?) \Z ) .+ | [-_] .+ )? \Z
    | .+ \.env \Z
    | id_(?:rsa|dsa|ecdsa|ed25519|xmss)(?:_sk)? (?: [._-] .* )? \Z
    | secrets? (?: [._-][\w.-]* )? \. (?:json|ya?ml|toml|ini|env|properties|cfg|conf|xml) \Z
    | client_secrets? .* \.json \Z
    | service[-_]?account .* \.json \Z
    | .* \.tfstate\.backup \Z
    | ssh_host_ .* _key \Z"""
)

_LEFTOVER_NAME = re.compile(
    rb"""(?x) ~\$ .*                            # office lock files
    | \.~lock\. .* \# \Z                        # LibreOffice
    | .* ~ \Z                                   # backups of vim, emacs, gedit
    | \# .* \# \Z | \.\# .*                     # emacs: autosave, lock
    | \. .* \.sw[a-px] \Z                       # vim: swap files, and what it tries names with
    | 4913 \Z                                   # vim asks with it whether it may write here
    | \.goutputstream- .*                       # GLib's safe save
    | \.nfs [0-9a-f]{8,} \Z | \.fuse_hidden .*  # open files that were deleted
    | .* ___jb_(?:tmp|old)___ \Z                # JetBrains' safe write
    | (?:\.|~) syncthing [.~] .*
    | \._ .*                                    # AppleDouble"""
)

_SUSPECT = frozenset(b"~#.4isc")
"""First bytes of the names the two expressions can match, apart from what they find at the end."""

Rule = tuple[str, str]
"""(reason code, the rule for people)"""

_SECRET: Rule = ("secret_name", "name of a secret")

_NAMES: dict[bytes, Rule] = {
    **dict.fromkeys(SYSTEM_FILES, ("builtin", "file of the operating system")),
    **dict.fromkeys(SECRET_FILES, _SECRET),
}

_EXTENSIONS: dict[bytes, Rule] = {
    **{end: ("builtin", f"media, archive or binary *.{end.decode()}") for end in MEDIA_AND_BINARIES},
    **{end: ("builtin", f"unfinished file *.{end.decode()}") for end in LEFTOVER_EXTENSIONS},
    **{end: ("secret_name", f"*.{end.decode()}") for end in SECRET_EXTENSIONS},
}

CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
"""Cache Directory Tagging Specification (bford.info/cachedir): a file CACHEDIR.TAG that begins with this."""

MARKER_NAMES = frozenset({b"pyvenv.cfg", b"CACHEDIR.TAG"})
"""Files that say what kind of folder they lie in: when one comes or goes, the folder is looked at again."""


def folder_rule(name: bytes) -> Rule | None:
    """Why a folder of this name is left out, or None."""
    name = name.lower()
    if name in IGNORED_FOLDERS or name.startswith(b".trash-") or name.endswith(b".egg-info"):
        return "builtin", f"folder {name.decode('utf-8', 'backslashreplace')}"
    if name in SECRET_FOLDERS:
        return "secret_name", f"folder {name.decode('utf-8', 'backslashreplace')}"
    return None


def file_rule(name: bytes, folder: bytes = b"") -> Rule | None:
    """Why a file of this name is left out, or None. Secrets come first. `folder` is the name of its folder."""
    name = name.lower()
    rule = _NAMES.get(name)
    if rule is not None:
        return rule
    extension = name.rpartition(b".")[2]
    by_extension = _EXTENSIONS.get(extension) if extension != name else None
    if by_extension is not None and by_extension[0] == "secret_name":
        return by_extension
    if name[0] in _SUSPECT or name[-1] in b"~_" or extension in (b"env", b"backup"):
        if _SECRET_NAME.match(name):
            return _SECRET
        if _LEFTOVER_NAME.match(name):
            return "builtin", "editor leftover"
    if (folder, name) in SECRET_PLACES:
        return _SECRET
    return by_extension


def marker_rule(names: Collection[bytes], first_bytes: Callable[[bytes], bytes]) -> Rule | None:
    """Why a folder with these names in it is left out, or None. `first_bytes` reads the beginning of one of
    them."""
    if b"pyvenv.cfg" in names:
        return "builtin", "virtual environment (pyvenv.cfg)"
    if b"CACHEDIR.TAG" in names and first_bytes(b"CACHEDIR.TAG").startswith(CACHE_SIGNATURE):
        return "builtin", "cache folder (CACHEDIR.TAG)"
    if b"Entries" in names and b"Repository" in names and b"Root" in names:
        return "builtin", "CVS folder"
    return None
