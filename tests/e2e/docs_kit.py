"""A real documentation tree for tests: the source distribution of celery, fetched once, and a part of it unpacked;
and questions about it.

What must stay true: the archive is the one whose hash stands here, from wherever it came; what is left out is left
out by name, so that every run indexes the same files.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

RELEASE = "celery==5.7.0"
ARCHIVE = "celery-5.7.0.tar.gz"
SHA256 = "6a5dfcf6662287204f009a02002b9e66c83d4105e47ebabdc7079108772fc6f0"
FETCH_S = 300.0

TAKEN = ("docs/", "examples/", "requirements/", "README.rst", "celery/schedules.py", "celery/security/")
LEFT_OUT = (
    "docs/history/",  # release notes say everything a second and a third time
    "docs/userguide/configuration.rst",  # these are large, and the test has a few minutes
    "docs/userguide/tasks.rst",
    "docs/userguide/extending.rst",
    "docs/userguide/daemonizing.rst",
    "docs/AUTHORS.txt",
    "docs/spelling_wordlist.txt",
    "docs/Makefile",
    "docs/make.bat",
    "docs/images/blacksmith-logo-white-on-black.svg",  # pictures that are text: numbers without words
    "docs/images/cloudamqp-logo-lightbg.svg",
    "docs/images/dragonfly.svg",
)
"""Beginnings of paths in the archive, below its one folder."""

IGNORED = {
    ".png": "builtin",
    ".jpg": "builtin",
    ".ico": "builtin",
    ".pem": "secret_name",
    ".key": "secret_name",
}
"""How the name ends -> why such a file is never read. All others are texts."""


def archive() -> Path:
    """The source distribution, from this user's cache or else downloaded by pip. AssertionError when neither
    works."""
    folder = platformdirs.user_cache_path("ragd-tests")
    kept = folder / ARCHIVE
    if kept.is_file() and _sha256(kept) == SHA256:
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        options = ["--no-deps", "--no-binary=:all:", "--no-build-isolation", "--quiet", "--dest", fresh]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", RELEASE, *options],
            capture_output=True,
            text=True,
            timeout=FETCH_S,
            check=False,
        )
        found = Path(fresh) / ARCHIVE
        assert done.returncode == 0, f"pip could not download {RELEASE}, which this test indexes:\n{done.stderr}"
        assert found.is_file(), f"pip downloaded no {ARCHIVE} but {os.listdir(fresh)}"
        assert _sha256(found) == SHA256, f"{ARCHIVE} is not the file this test was written for"
        found.replace(kept)
    return kept


def unpack(file: Path, folder: Path) -> list[str]:
    """Unpack the part of the archive that is indexed into `folder`. Returns the paths below it, sorted."""
    with tarfile.open(file) as packed:
        members = {member.name.partition("/")[2]: member for member in packed.getmembers() if member.isfile()}
        chosen = sorted(rel for rel in members if rel.startswith(TAKEN) and not rel.startswith(LEFT_OUT))
        for rel in chosen:
            member = members[rel].replace(name=rel, deep=False)
            packed.extract(member, folder, filter="data")
    return chosen


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def reason_to_ignore(rel: str) -> str | None:
    """Why a file of the tree must not be indexed; None for a text."""
    return IGNORED.get(Path(rel).suffix)


@dataclass(frozen=True)
class Question:
    """What a person would ask, and where the answer stands: the path, and a piece of one line of the answer. `also` is
    another such piece that would do as well."""

    text: str
    rel: str
    quote: str
    also: str = ""

    def is_answered_by(self, text: str) -> bool:
        return self.quote in text or (self.also != "" and self.also in text)


GUIDE, BROKERS = "docs/userguide", "docs/getting-started/backends-and-brokers"

QUESTIONS = (
    Question(
        "How do I throw away all the jobs that are still waiting?",
        "docs/faq.rst",
        "**Answer:** You can use the ``celery purge`` command to purge",
    ),
    Question(
        "my database reports deadlocks when results are stored",
        "docs/faq.rst",
        "**Answer:** MySQL has default isolation level set to `REPEATABLE-READ`,",
    ),
    Question(
        "Can workers be written in other programming languages?",
        "docs/faq.rst",
        "language has an AMQP client, there shouldn't be much work to create a worker",
    ),
    Question(
        "What happens when I press Ctrl-C once while a worker is busy?",
        f"{GUIDE}/workers.rst",
        "the :sig:`INT` (Ctrl-C) signal, it will initiate a warm shutdown as well.",
    ),
    Question(
        "run a job every Monday morning",
        f"{GUIDE}/periodic-tasks.rst",
        "# Executes every Monday morning at 7:30 a.m.",
    ),
    Question(
        "use my local time zone for scheduled jobs instead of UTC",
        f"{GUIDE}/periodic-tasks.rst",
        "but you can change the time zone used using the :setting:`timezone`",
    ),
    Question(
        "make sure that two workers never do the same job at the same time, with a lock",
        "docs/tutorials/task-cookbook.rst",
        "In this example we'll be using the cache framework to set a lock that's",
    ),
    Question(
        "after how long does redis hand an unacknowledged message to somebody else",
        f"{BROKERS}/redis.rst",
        "The default visibility timeout for Redis is 1 hour.",
    ),
    Question(
        "choose the region of Amazon's queue service",
        f"{BROKERS}/sqs.rst",
        "The default region is ``us-east-1`` but you can select another region",
    ),
    Question(
        "stop inside a running task and look at its variables over telnet",
        f"{GUIDE}/debugging.rst",
        "location and creates a socket you can telnet into to remotely debug",
    ),
    Question(
        "let one server do only certain tasks, chosen by their name",
        f"{GUIDE}/routing.rst",
        "and one server `z`, that only handles feed related tasks. You can use this",
    ),
    Question(
        "Is it dangerous to unpickle what strangers send?",
        f"{GUIDE}/security.rst",
        "but for the same reasons `pickle` is inherently insecure",
    ),
    Question(
        "call a function of mine when a task has failed",
        f"{GUIDE}/calling.rst",
        "You can also cause a callback to be applied if task raises an exception",
    ),
    Question(
        "messages that may be lost need not be written to disk, to be faster",
        f"{GUIDE}/optimizing.rst",
        "A value of one means that the message won't be written to disk, and a value",
    ),
    Question(
        "add a user and a virtual host to RabbitMQ and give it permissions",
        f"{BROKERS}/rabbitmq.rst",
        "To use Celery we need to create a RabbitMQ user, a virtual host and",
    ),
    Question(
        "a callback that does not want the result of its parent",
        f"{GUIDE}/canvas.rst",
        "Sometimes you want to specify a callback that doesn't take",
    ),
    Question(
        "What does idempotent mean?",
        "docs/glossary.rst",
        "can be called multiple times without changing the result.",
    ),
    Question(
        "a crawler that never visits a page twice",
        "examples/eventlet/webcrawler.py",
        "# To not destroy the internet, we only fetch URLs on the same domain.",
    ),
    Question(
        "does */2 for the day of the week mean every second day?",
        "celery/schedules.py",
        "'every two days', but 'every day that is divisible by two'!)",
    ),
    Question(
        "How many workers can consume from Kafka?",
        f"{BROKERS}/kafka.rst",
        "Currently, using Kafka as a broker means that only one worker can be used.",
    ),
    Question(
        "where is it checked that a certificate is out of date before a signature is verified",
        "celery/security/certificate.py",
        "raise SecurityError(f'Expired certificate: {self.get_id()!r}')",
    ),
    Question(
        "Which pool is good for tasks that mostly wait for the network?",
        f"{GUIDE}/concurrency/index.rst",
        "- `eventlet` and `gevent`: Designed for IO-bound tasks, these models use",
    ),
    Question(
        "Why should tests not run tasks eagerly?",
        f"{GUIDE}/testing.rst",
        "is by definition not suitable for unit tests.",
    ),
    Question(
        "take the configuration from the settings of a Django project",
        "docs/django/first-steps-with-django.rst",
        "We also add the Django settings module as a configuration source",
        "app.config_from_object('django.conf:settings', namespace='CELERY')",
    ),
    Question(
        "security advisory about gaining root rights through the user and group options",
        "docs/sec/CELERYSA-0001.txt",
        "only the effective user was changed, with the real id remaining",
    ),
    Question(
        "Who was Jon Bentley's question about the river for?",
        f"{GUIDE}/optimizing.rst",
        "In the book Programming Pearls, Jon Bentley presents the concept of",
    ),
)
"""Written after reading the tree, in words that are mostly not those of the answer."""

_TABLE = "".join(f"| k{number:03d} | ms | {number} |\n" for number in range(120))
LONG = ["---", "author: É", "a: 1", "b: 2", "c: 3", "---", *(f"Zeile {n}: Größe → 温度." for n in range(7, 201))]
LONG[136] = "Auf dieser Zeile steht zqline, größer als é."
"""Lines, one of which has a word of its own."""

GOOD_FILES = {
    "windows.md": b"---\r\nauthor: x\r\n---\r\n# Setup\r\n\r\nText zqcrlf.\r\n\r\n## Second\r\n\r\nMore of it.\r\n",
    "fences.md": b"# Setup\n\n````md\n```sh\n# step zqfence\n```\n## not a title\n````\n\nAfter.\n",
    "table.md": f"# Limits\n\n| key | unit | limit |\n|---|---|---|\n{_TABLE}".encode(),
    "people.csv": b'\xef\xbb\xbf"Last, First",Age\r\n"Roe, Ada zqbom",30\r\n',
    "notes.csv": b'id;note\r\n1;"first zqa\r\nsecond; zqb"\r\n2;ok\r\n',
    "latin.txt": b"caf\xe9 zqlatin\n",
    "wide.txt": "héllo zqwide\n".encode("utf-16"),
    "blind.txt": "héllo zqblind, with no mark at its start\n".encode("utf-16-le"),
    "nul.txt": b"alpha\x00beta zqnul\n",
    "long.md": "\r\n".join(LONG).encode(),
    "special.md": b"The end mark is <|endoftext|> and [SEP], code zqspecial.\n",
    "empty.txt": b"",
}
"""Files that other tools stumbled over, and that are indexed. Each word with zq stands in one of them alone."""

LEFTOVERS = [
    "~$report.docx",
    ".report.md.swp",
    "notes.md~",
    "#notes.md#",
    ".goutputstream-ABC",
    "x.part",
    "x.crdownload",
]
"""Names that are never indexed."""
