"""PostgreSQL, on a real server started for this test where one is installed."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from keyhole.errors import UnreadableData
from keyhole.io import read
from tests.io.tables import NAMES, ROWS, labelled_records

pytestmark = pytest.mark.filterwarnings("ignore::keyhole.errors.DoubtfulKeys")


def find_server() -> Path | None:
    """The folder of the server's programs: on the path, or where Debian puts them."""
    folders = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    if found := shutil.which("initdb"):
        folders.append(Path(found).resolve().parent)
    return next(
        (folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None
    )


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server that listens on a socket in a private folder only."""
    programs = find_server()
    if programs is None:
        pytest.skip("no PostgreSQL server on this machine (initdb not found)")
    user: dict[str, object] = {}
    folder = Path(tempfile.mkdtemp(prefix="keyhole-pg-"))
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        try:
            owner = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user 'postgres'")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        user = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}

    def run(program: str, *arguments: str) -> None:
        command = [str(programs / program), "-D", str(folder / "data"), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, **user)  # type: ignore[call-overload]

    try:
        run("initdb", "--username=keyhole", "--auth=trust", "--no-sync", "--encoding=UTF8")
        run("pg_ctl", "start", "--wait", "-l", str(folder / "log"), "-o", f"-F -h '' -k {folder}")
        try:
            yield f"postgresql://keyhole:secretword@/postgres?host={folder}"
        finally:
            run("pg_ctl", "stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def filled(server: str) -> str:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(server) as connection:
        with connection.cursor() as cursor:
            cursor.execute('CREATE TABLE survey ("SEX" text, "AGE" integer, "TOWN" text, weight double precision)')
            cursor.executemany("INSERT INTO survey VALUES ($1, $2, $3, 2.5)", [
                (sex, None if age is None else int(age), town) for sex, age, town in ROWS
            ])  # fmt: skip
        connection.commit()
    return server


def test_postgresql(filled: str) -> None:
    data = read(filled, table="survey")
    assert data.columns == (*NAMES, "weight")
    assert data.records == len(ROWS)
    assert "secretword" not in data.source
    assert labelled_records(data) == list(ROWS)
    assert labelled_records(read(filled, table="public.survey"), ["weight"]) == [("2.5",)] * len(ROWS)


def test_a_table_that_is_not_there(filled: str) -> None:
    with pytest.raises(UnreadableData, match="absent") as error:
        read(filled, table="absent")
    assert "secretword" not in str(error.value)


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnreadableData, match="could not be read") as error:
        read(f"postgresql://keyhole:secretword@/x?host={tmp_path}", table="survey")
    assert "secretword" not in str(error.value)
