"""Files appear whole, for their owner only, or not at all."""

import os
import stat
from pathlib import Path

import pytest

from keyhole.errors import InputError
from keyhole.report.writing import private_file, private_files, private_folder


def write_private(path: Path, content: str | bytes) -> None:
    with private_files({path: content}):
        pass


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o377])
def test_a_file_is_readable_by_its_owner_only_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_private(tmp_path / "report.html", "é")
    finally:
        os.umask(before)
    assert mode(tmp_path / "report.html") == 0o600
    assert (tmp_path / "report.html").read_bytes() == "é".encode()


def test_the_file_is_private_while_it_is_being_written(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with private_file(tmp_path / "records.csv") as temporary:
            assert mode(temporary) == 0o600
            assert temporary.parent == tmp_path
            assert not (tmp_path / "records.csv").exists()
    finally:
        os.umask(before)


def test_an_open_file_that_others_could_read_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert (path.read_text(), mode(path)) == ("new", 0o600)


def test_after_an_error_the_old_content_is_still_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")

    def fail_halfway() -> None:
        with private_file(path) as temporary:
            temporary.write_text("half of the n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_halfway()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "report.html", tmp_path / "latest.html"
    target.write_text("old")
    link.symlink_to(target)
    write_private(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert mode(target) == 0o600


def test_a_planted_link_is_not_followed_for_the_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    monkeypatch.setattr("keyhole.report.writing.token_hex", lambda _: "guessed")
    (tmp_path / ".report.html.guessed.tmp").symlink_to(victim)
    with pytest.raises(InputError):
        write_private(tmp_path / "report.html", "x")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("place", ["nowhere/report.html", "file/report.html", "."])
def test_an_impossible_place_is_an_input_error_of_one_line(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"^Cannot write") as refused:
        write_private(tmp_path / place, "x")
    assert "\n" not in str(refused.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_directory_without_permission_is_an_input_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="you may not write there"):
        write_private(tmp_path / "report.html", "x")
    tmp_path.chmod(0o700)


def test_a_refusal_of_the_system_names_its_reason(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name too long"):
        write_private(tmp_path / ("x" * 300), "x")


def test_new_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = private_folder(tmp_path / "out" / "run 1")
    finally:
        os.umask(before)
    assert mode(made) == mode(made.parent) == 0o700


def test_a_folder_that_exists_keeps_its_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert mode(private_folder(tmp_path)) == 0o755


def test_a_file_cannot_be_used_as_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="not a directory"):
        private_folder(tmp_path / "file")
    with pytest.raises(InputError, match="Cannot write"):
        private_folder(tmp_path / "file" / "inside")
