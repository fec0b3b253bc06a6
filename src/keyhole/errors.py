"""Every exception and warning of Keyhole.

::

    DisclosureRiskError                 anything Keyhole refuses to do, in words for the user
    ├── InputError                      what was given cannot be used (exit status 2)
    │   ├── UnreadableData              a file, table or frame that cannot be read
    │   ├── UnknownKeyVariable          a key that is not a column
    │   ├── InvalidKeys                 keys that cannot serve: given twice, none at all, no records left
    │   ├── InvalidRules                a recode, codebook or structural-zero file that does not parse or fit
    │   ├── ForbiddenRecords            records inside cells that a rule declares impossible
    │   ├── InvalidPopulation           a population, fraction or weights that cannot be right
    │   ├── UnknownModel                a model name or option that does not exist
    │   ├── InvalidCheckpoint           a run to resume that is not this one
    │   └── MissingExtra                an optional package that is not installed
    └── FitFailed                       a model that could not be fitted to this sample (exit status 3)

    DisclosureRiskWarning               usable, but the user should know
    ├── DoubtfulKeys                    one level, very many levels, labels that look like missing values
    └── NotConverged                    an estimate that should not be trusted

A message names columns, rules and counts, never the values of a record: it must be safe to paste into a
public issue.
"""


class DisclosureRiskError(Exception):
    """Anything Keyhole refuses to do; the message is written for the user."""


class InputError(DisclosureRiskError):
    """What was given cannot be used."""


class UnreadableData(InputError):
    """A file, table or frame that cannot be read."""


class UnknownKeyVariable(InputError):
    """A key that is not a column of the data."""


class InvalidKeys(InputError):
    """Keys that cannot serve: given twice, none at all, or leaving no records."""


class InvalidRules(InputError):
    """A recode, codebook or structural-zero file that does not parse or does not fit the data."""


class ForbiddenRecords(InputError):
    """Records inside cells that a structural-zero rule declares impossible."""


class InvalidPopulation(InputError):
    """A population size, sampling fraction or weights that cannot be right."""


class UnknownModel(InputError):
    """A model name, or an option of a model, that does not exist."""


class InvalidCheckpoint(InputError):
    """A file of chains to resume that is from another run, or no such file."""


class MissingExtra(InputError):
    """An optional package that is needed for this input and is not installed."""


class FitFailed(DisclosureRiskError):
    """A model that could not be fitted to this sample; there is no number to report."""


class DisclosureRiskWarning(UserWarning):
    """Usable, but the user should know."""


class DoubtfulKeys(DisclosureRiskWarning):
    """Keys with one level, very many levels, or labels that look like missing values."""


class NotConverged(DisclosureRiskWarning):
    """An estimate that should not be trusted."""
