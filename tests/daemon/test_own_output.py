"""Where this process writes its log."""

from __future__ import annotations

import os
from pathlib import Path

from ragd.daemon.files.own_output import output_files


def test_fault_c9_a_file_that_output_goes_to_is_named(tmp_path: Path) -> None:
    log = tmp_path / "ragd.log"
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT)
    reading, writing = os.pipe()
    try:
        assert output_files((descriptor, writing)) == [os.fsencode(log.resolve())]
        log.rename(tmp_path / "moved.log")
        assert output_files((descriptor,)) == [os.fsencode((tmp_path / "moved.log").resolve())]
        (tmp_path / "moved.log").unlink()
        assert output_files((descriptor,)) == []
    finally:
        for number in (descriptor, reading, writing):
            os.close(number)
    assert output_files((descriptor,)) == []
