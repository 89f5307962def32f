"""Commands on studies, typed in a folder of their own."""

import pytest
from click.testing import CliRunner

from bestarm.cli import main
from tests.cli.commands import ARMS, CREATE, told


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BESTARM_STORAGE", "s.jsonl")
    for name in ("BESTARM_STUDY", "BESTARM_SOURCE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "arms.csv").write_text(ARMS)
    return lambda *args, **kw: CliRunner().invoke(main, [str(arg) for arg in args], **kw)


@pytest.fixture
def assay(call):
    """Return a caller in a storage with one study, whose first six trials, of A to E and A, are told: 1, 2, ..., 6."""
    assert call("create-study", "assay", *CREATE, "--budget", 24, "--batch", 6).exit_code == 0
    assert call("ask", "-o", "batch.csv").exit_code == 0
    assert call("tell", told("batch.csv", range(1, 7)), "--source", "ann").exit_code == 0
    return call
