"""How the report says a number, a chance, a duration, and a label it did not write."""

import re
import shlex
from collections.abc import Sequence
from unicodedata import bidirectional

from keyhole.io.address import HIDDEN, shown_address
from keyhole.risk.estimate import RiskEstimate

# Control characters could drive a terminal, bidirectional overrides could reorder the text around a label.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.*", re.DOTALL)
_SECRET = re.compile(r"[\w%.-]*(?:pass|pwd|secret|token)[\w%.-]*\s*=.*|\w*:[^\s]*@.*", re.DOTALL | re.IGNORECASE)


def clean(label: str) -> str:
    """A label as it may be shown: characters that act on a terminal or on other text become visible marks.

    Examples
    --------
    >>> clean("red\x1b[31m")
    'red\N{REPLACEMENT CHARACTER}[31m'
    """
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", label)


def without_secrets(text: str) -> str:
    """A command line or source in which database addresses show their host and database only.

    What follows an address, or ``password=``, up to the end of the same argument of the command line is hidden
    with it; in a text that is not a command line, up to the end of the text.
    A command line with an ``@`` outside an address may have been joined without quotes, and counts as such a text.

    Examples
    --------
    >>> without_secrets("keyhole assess postgresql://ann:hunter2@db/census --table person")
    'keyhole assess postgresql://db/census --table person'
    >>> without_secrets("keyhole assess 'postgresql://ann:p ss@db/census' --table person")
    "keyhole assess 'postgresql://(address hidden)' --table person"
    """

    def hide(word: str) -> str:
        if _ADDRESS.search(word):
            return _ADDRESS.sub(lambda address: shown_address(address[0]), word, count=1)
        return _SECRET.sub(HIDDEN, word, count=1)

    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    # A command line that was joined from arguments is taken apart into them; other texts stay in one piece.
    if shlex.join(words) != text or (_ADDRESS.search(text) and any("@" in w and "://" not in w for w in words)):
        return hide(text)
    return shlex.join(map(hide, words))


def shortened(label: str, length: int = 80) -> str:
    """A label of at most ``length`` characters, the end of a longer one replaced by an ellipsis.

    Examples
    --------
    >>> shortened("occupation of father", 11)
    'occupation…'
    """
    return label if len(label) <= length else label[: length - 1].rstrip() + "…"


def in_prose(label: str, length: int = 60) -> str:
    """A label inside a sentence: safe, not too long, and unable to turn the direction of what follows.

    Examples
    --------
    >>> in_prose("AGE"), len(in_prose("x" * 200))
    ('AGE', 60)
    """
    shown = shortened(clean(label), length)
    turns = any(bidirectional(letter) in ("R", "AL") for letter in shown)
    return f"\N{FIRST STRONG ISOLATE}{shown}\N{POP DIRECTIONAL ISOLATE}" if turns else shown


def count(value: int) -> str:
    """A whole number with thousands separated.

    Examples
    --------
    >>> count(14964)
    '14,964'
    """
    return f"{value:,}"


def large(value: int) -> str:
    """A number that may be beyond all counting: exact up to a billion, then by its order of magnitude.

    Examples
    --------
    >>> large(39600), large(7 * 10**40)
    ('39,600', 'about 7.0 x 10^40')
    """
    if value < 10**9:
        return count(value)
    digits = str(value)
    return f"about {digits[0]}.{digits[1]} x 10^{len(digits) - 1}"


def figure_of(value: float | int | str) -> str:
    """The value of a check, with no more digits than can be read.

    Examples
    --------
    >>> figure_of(1.00312), figure_of(6000), figure_of(14657.2), figure_of("interior")
    ('1.003', '6,000', '14,657', 'interior')
    """
    if isinstance(value, str):
        return clean(value)
    return f"{value:,.0f}" if isinstance(value, int) or 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def rounded(value: float) -> str:
    """A number no finer than it deserves: whole below 1,000, three digits above, one decimal below 10.

    Examples
    --------
    >>> [rounded(value) for value in (0.0, 0.04, 3.14, 251.7, 12345.6)]
    ['0', '<0.1', '3.1', '252', '12,300']
    """
    if value == 0:
        return "0"
    if value < 0.05:
        return "<0.1"
    if value < 9.95:
        return f"{value:.1f}".removesuffix(".0")
    if value < 1000:
        return f"{value:.0f}"
    digits = len(str(int(value))) - 3
    return f"{round(value, -digits):,.0f}"


def in_people(value: float) -> str:
    """An expected number of people in a sentence.

    Examples
    --------
    >>> in_people(0.2), in_people(3.4), in_people(251.7), in_people(0.0)
    ('fewer than one', 'about 3', 'about 252', 'none')
    """
    if value == 0:
        return "none"
    return "fewer than one" if value < 0.5 else f"about {rounded(round(value))}"


def percent(share: float) -> str:
    """A share in per cent, never rounded to a certainty that it is not.

    Examples
    --------
    >>> [percent(share) for share in (0.0, 0.0004, 0.0173, 0.305, 0.9996, 1.0)]
    ['0%', 'less than 0.1%', '1.7%', '30%', 'more than 99%', '100%']
    """
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    if share < 0.001:
        return "less than 0.1%"
    if share > 0.99:
        return "more than 99%"
    return f"{share:.1%}".replace(".0%", "%") if share < 0.0995 else f"{share:.0%}"


def between(estimate: RiskEstimate) -> str:
    """The interval of an estimate, in people.

    Examples
    --------
    >>> between(RiskEstimate(250.0, 210.0, 290.0, 0.95, 0.0, None))
    '210 to 290'
    """
    return span(rounded(estimate.low), rounded(estimate.high))


def span(low: str, high: str) -> str:
    """A range in words; its only end where both ends read the same.

    Examples
    --------
    >>> span("12%", "40%"), span("more than 99%", "more than 99%")
    ('12% to 40%', 'more than 99%')
    """
    return low if low == high else f"{low} to {high}"


def wrapped(label: str, length: int) -> list[str]:
    """A label in lines of at most ``length`` characters, broken after hyphens, spaces and underscores only.

    A part that is longer by itself stays whole.

    Examples
    --------
    >>> wrapped("poisson-inverse-gaussian", 16), wrapped("AGE", 16)
    (['poisson-inverse-', 'gaussian'], ['AGE'])
    """
    lines = [""]
    for part in re.findall(r"[^-_ ]*[-_ ]|[^-_ ]+", label):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > length:
            lines.append("")
        lines[-1] += part
    return [line.rstrip() for line in lines]


def duration(seconds: float) -> str:
    """A duration in the unit that fits it.

    Examples
    --------
    >>> duration(0.004), duration(12.34), duration(754), duration(7260)
    ('under 0.1 s', '12.3 s', '12 min 34 s', '2 h 1 min')
    """
    if seconds < 0.1:
        return "under 0.1 s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def listed(names: Sequence[str]) -> str:
    """Names as a sentence lists them.

    Examples
    --------
    >>> listed(["pitman"]), listed(["pitman", "ewens", "hdp"])
    ('pitman', 'pitman, ewens and hdp')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def plural(number: int, noun: str) -> str:
    """A number and its noun.

    Examples
    --------
    >>> plural(1, "key"), plural(1200, "record")
    ('1 key', '1,200 records')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
