"""What messages and reports show of a database address: never a password, whatever is wrong with the address."""

import shlex

import pytest

from keyhole.errors import InputError, UnreadableData
from keyhole.io import read
from keyhole.io.address import shown_address
from keyhole.report.words import without_secrets

SECRETS = [
    "postgresql://ann:hun/ter2@db/census",
    "postgresql://ann:hun?ter2@db/census",
    "postgresql://ann:hun#ter2@db/census",
    "postgresql://ann:hun@ter2@db/census",
    "postgresql://ann:hun ter2@db/census",
    "postgresql://ann:1?ter2@db/census",
    "postgresql://ann:hunter2@db/census?x=@",
    "postgresql://ann:hunter2@[abc/census",
    "postgresql://ann:hunter2@db:port/census",
    "postgresql://db/census?sslpassword=hunter2",
    "postgresql://db/census?p%61ssword=hunter2",
    "postgresql://db/census?password='hunter2'",
    "postgresql://db/census?password=hun ter2",
    "postgresql://db/census#hunter2",
    "PostgreSQL://ann:hunter2@db/census",
    "mysql://ann:hunter2@db/census",
    "postgresql:/ann:hunter2@db/census",
    "host=db password=hunter2",
    "host=db password='hun ter2'",
    "sqlite://ann:hunter2@host/x.sqlite",
]


@pytest.mark.parametrize("address", SECRETS)
def test_passwords_are_never_shown(address: str) -> None:
    command = shlex.join(["keyhole", "assess", address, "--table", "person"])
    for text in (command, f"keyhole assess {address} --table person", address):
        assert "ter2" not in without_secrets(text)
    assert "--table person" in without_secrets(command)
    with pytest.raises(InputError) as error:
        read(address, table="person")
    assert "ter2" not in str(error.value)
    assert "ter2" not in str(error.value.__context__)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (
            "postgresql://ann:hunter2@db.example.org:5432/census?sslmode=require",
            "postgresql://db.example.org/census",
        ),
        ("postgresql://ann@[::1]:5432/census", "postgresql://[::1]/census"),
        ("postgresql:///census", "postgresql:///census"),
        ("postgres://db", "postgres://db"),
        ("postgresql://h1,h2/census", "postgresql://(address hidden)"),
        ("sqlite:////data/study 1.sqlite?mode=ro", "sqlite:////data/study 1.sqlite"),
        ("duckdb:///study.duckdb", "duckdb:///study.duckdb"),
        ("no address", "(address hidden)"),
    ],
)
def test_host_and_database_are_shown(address: str, shown: str) -> None:
    assert shown_address(address) == shown


def test_texts_without_addresses_stay() -> None:
    for text in (
        "keyhole assess 'a b.csv' --keys AGE,SEX",
        "Ann's survey.csv",
        "table 'person' of postgresql://db/census",
    ):
        assert without_secrets(text) == text


@pytest.mark.parametrize("address", ["postgresql://[abc/x", "sqlite://[abc/x", "duckdb://[abc/x", "//[abc/x.csv"])
def test_broken_addresses_are_refused(address: str) -> None:
    with pytest.raises(UnreadableData):
        read(address, table="t")
