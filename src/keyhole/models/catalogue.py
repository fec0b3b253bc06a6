"""Which models there are: name, paper, when to use each, when it fails."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import Any

from keyhole.errors import UnknownModel
from keyhole.inference.fit import RiskModel


@dataclass(frozen=True, slots=True)
class Entry:
    """One model of the catalogue.

    Attributes
    ----------
    name
        What the user types.
    where
        ``module:Class`` of the settings; imported only when the model is asked for.
    paper
        Where the model comes from.
    use
        When to use it.
    fails
        When it fails.
    """

    name: str
    where: str
    paper: str
    use: str
    fails: str

    @property
    def constructor(self) -> Callable[..., RiskModel]:
        """The frozen settings' class."""
        module, _, attribute = self.where.partition(":")
        found: Callable[..., RiskModel] = getattr(import_module(module), attribute)
        return found

    @property
    def options(self) -> Mapping[str, object]:
        """Each option of the model and its default."""
        described: Any = self.constructor
        return {
            field.name: None if field.default is MISSING else field.default
            for field in fields(described)
            if field.init
        }


def model_named(name: str, **options: object) -> RiskModel:
    """The model of that name with those options.

    Options given as text, as on a command line, are read as the type of the option's default.

    Examples
    --------
    >>> model_named("pitman", draws=500).settings["draws"]
    500
    """
    if name not in CATALOGUE:
        raise UnknownModel(f"There is no model named {name!r}. {_closest(name, list(CATALOGUE))}")
    entry = CATALOGUE[name]
    known = entry.options
    for option in options:
        if option not in known:
            raise UnknownModel(f"The model {name} has no option {option!r}. {_closest(option, list(known))}")
    return entry.constructor(**{option: _read(option, value, known[option]) for option, value in options.items()})


def automatic(*, weighted: bool = False) -> tuple[str, ...]:
    """What runs when the user names no model: quick ones first, for an answer within seconds, then the pool.

    The individual-risk estimator joins for survey weights.
    """
    quick = ("pitman", "ewens", "poisson-gamma", "slide-negative-binomial", "poisson-inverse-gaussian")
    return (*quick, *(("benedetti-franconi",) if weighted else ()), "auto")


def _closest(given: str, known: list[str]) -> str:
    near = get_close_matches(given, known, n=3, cutoff=0.5)
    if near:
        return f"Closest: {', '.join(near)}."
    return f"There are: {', '.join(known)}." if known else "It has none."


def _read(option: str, value: object, default: object) -> object:
    """A value given as text, read as the type of the default."""
    if not isinstance(value, str) or isinstance(default, str) or default is None:
        return value
    try:
        if isinstance(default, bool):
            return {"true": True, "yes": True, "false": False, "no": False}[value.lower()]
        return type(default)(value)  # type: ignore[call-arg]
    except (ValueError, TypeError, KeyError):
        expected = {bool: "true or false", int: "a whole number", float: "a number"}.get(
            type(default), "another type"
        )
        raise UnknownModel(f"The option {option} must be {expected}, found {value!r}.") from None


_SUPERPOPULATION = "keyhole.models.superpopulation"
_LOGLINEAR = "keyhole.models.loglinear"
_MIXED = "keyhole.models.mixed_loglinear.model"
_CAROTA = "Carota, Filippone, Leombruni & Polettini (2015), Annals of Applied Statistics 9"
_SKINNER_HOLMES = "Skinner & Holmes (1998), Journal of Official Statistics 14"

_ENTRIES = (
    Entry(
        "auto",
        "keyhole.models.pooled.model:Pooled",
        "Keyhole's own; Yao, Vehtari, Simpson & Gelman (2018), Bayesian Analysis 13, for the shares",
        "The default: several models pooled by how well each predicts records it has not seen.",
        "Where all of its models fail: below 500 records, with clustered samples, on data unlike people.",
    ),
    Entry(
        "sequential-logit",
        "keyhole.models.sequential.model:SequentialLogit",
        "Keyhole's own; derived and checked in docs/explanation/sequential-logit.md",
        "First choice: it learns how the keys depend on each other; its intervals were checked on real samples.",
        "Below 500 records, with keys that repeat each other, with clustered samples, on data unlike people.",
    ),
    Entry(
        "two-way",
        f"{_LOGLINEAR}.model:TwoWay",
        f"{_SKINNER_HOLMES}; Fienberg & Makov (1998), Journal of Official Statistics 14",
        "As a second opinion with 5,000 records and more: the usual model of agencies, fitted to the end.",
        "In small samples: combinations of two levels nobody has count as impossible, and risk is far too low.",
    ),
    Entry(
        "latent-class",
        "keyhole.models.latent_class.model:LatentClass",
        "Dunson & Xing (2009), Journal of the American Statistical Association 104; "
        "Manrique-Vallier & Reiter (2014), Journal of Computational and Graphical Statistics 23",
        "As a second opinion of another kind: groups of people with their own habits instead of interactions.",
        "Where keys depend in ways that few groups cannot show; prior=uniform, as published, overstates risk.",
    ),
    Entry(
        "hdp",
        "keyhole.models.membership.model:HierarchicalMembership",
        "Battiston & Rimella, Disclosure risk assessment with Bayesian non-parametric hierarchical modelling",
        "As a second opinion: people mix several profiles, as many as the records ask for.",
        "Where chains from opposite starts do not agree, which is said; on real samples it overstates risk.",
    ),
    Entry(
        "gom",
        "keyhole.models.membership.model:GradeOfMembership",
        "Manrique-Vallier & Reiter (2012), Journal of the American Statistical Association 107",
        "As a second opinion: people mix profiles, whose number is chosen by how well records are predicted.",
        "With few profiles, which overstate risk; choosing their number takes several short runs.",
    ),
    Entry(
        "np-i",
        f"{_MIXED}:ClusteredMain",
        _CAROTA,
        "As a second opinion on tables of up to a few million cells: main effects, and clusters of odd cells.",
        "Where keys depend strongly; each empty cell takes part, so that time grows with the table.",
    ),
    Entry(
        "np-i-emp",
        f"{_MIXED}:EmpiricalMain",
        _CAROTA,
        "As np-i, faster: main effects are those of maximum likelihood.",
        "As np-i; its intervals take the main effects as known.",
    ),
    Entry(
        "np-o",
        f"{_MIXED}:ClusteredNone",
        _CAROTA,
        "To see what clusters of cells can do alone: no key has an effect.",
        "On real tables: cells with the same count are alike whatever their levels.",
    ),
    Entry(
        "p-ii",
        f"{_MIXED}:ParametricTwoWay",
        f"{_CAROTA}; Elamir & Skinner (2006), Journal of Official Statistics 22",
        "As two-way, with a prior instead of impossible combinations and an effect of each cell.",
        "With many levels: thousands of interactions are drawn from a normal approximation.",
    ),
    Entry(
        "p-i",
        f"{_MIXED}:ParametricMain",
        f"{_CAROTA}; Elamir & Skinner (2006), Journal of Official Statistics 22",
        "To see what independent effects of cells add to main effects.",
        "On keys that depend on each other.",
    ),
    Entry(
        "p-o",
        f"{_MIXED}:ParametricNone",
        _CAROTA,
        "As the simplest of its kind, for comparison.",
        "Always but by chance: the law of the cells' means is fixed beforehand.",
    ),
    Entry(
        "independence",
        f"{_LOGLINEAR}.model:Independence",
        _SKINNER_HOLMES,
        "As an upper benchmark: what the risk would be if keys said nothing of each other.",
        "On real keys, which depend on each other: several times too high.",
    ),
    Entry(
        "loglinear",
        f"{_LOGLINEAR}.model:LogLinear",
        f"{_SKINNER_HOLMES}; Bishop, Fienberg & Holland (1975), Discrete Multivariate Analysis",
        "When you know which keys act together: name the terms, as in generators=age*sex+region.",
        "With many terms in small samples, as two-way does; with few terms it overstates risk.",
    ),
    Entry(
        "skinner-shlomo",
        f"{_LOGLINEAR}.chosen:SkinnerShlomo",
        "Skinner & Shlomo (2008), Journal of the American Statistical Association 103",
        "When a log-linear model is asked for and its terms must be justified: shows every model on the way.",
        "In small samples its criterion can be content with a bad model; a search takes minutes.",
    ),
    Entry(
        "lasso",
        f"{_LOGLINEAR}.chosen:PoissonLasso",
        "Tibshirani (1996), Journal of the Royal Statistical Society B 58; derived on its page",
        "As two-way where pairs of levels are sparse: interactions are shrunk, and no combination is impossible.",
        "Slow on large tables; its intervals take the chosen penalty as known.",
    ),
    Entry(
        "lancaster",
        "keyhole.models.lancaster.model:LancasterAdditive",
        "Takemura, Evaluation of per-record identification risk by additive modeling of interaction for "
        "contingency table cell probabilities",
        "For a quick look that is easy to explain: rare levels and rare pairs of levels make a record risky.",
        "On dependent keys, where c(lambda) is far above 1: on real samples tau1 was 50 to 219% too high.",
    ),
    Entry(
        "ewens",
        f"{_SUPERPOPULATION}.ewens:Ewens",
        "Ewens (1972), Theoretical Population Biology 3; Samuels (1998), Journal of Official Statistics 14",
        "As a lower benchmark, or when combinations saturate: a census would hold few the sample does not.",
        "On most real keys: far too low where new combinations keep turning up.",
    ),
    Entry(
        "pitman",
        f"{_SUPERPOPULATION}.pitman:Pitman",
        "Pitman (1995), Probability Theory and Related Fields 102; "
        "Hoshino (2001), Journal of Official Statistics 17",
        "First choice among models of the size index alone; fast, and often the right order of magnitude.",
        "On dependent keys, where it can be several times too high; every unique gets the same risk.",
    ),
    Entry(
        "poisson-gamma",
        f"{_SUPERPOPULATION}.poisson_gamma:PoissonGamma",
        "Bethlehem, Keller & Pannekoek (1990), Journal of the American Statistical Association 85",
        "When the number of admissible cells is known and moderate and their sizes vary smoothly.",
        "When most admissible cells are empty for a reason that nobody declared; it then acts like Ewens.",
    ),
    Entry(
        "slide-negative-binomial",
        f"{_SUPERPOPULATION}.slide_negative_binomial:SlideNegativeBinomial",
        "Chen & Keller-McNulty (1998), Journal of Official Statistics 14",
        "When the number of cells is unknown or meaningless and cells are neither many nor very unequal in size.",
        "When a few cells are huge: one shape cannot serve them and the uniques together.",
    ),
    Entry(
        "poisson-inverse-gaussian",
        f"{_SUPERPOPULATION}.poisson_inverse_gaussian:PoissonInverseGaussian",
        "Carlson (2002), Statistics in Transition 5",
        "As poisson-gamma, where cells are more unequal; with very many cells it acts like Pitman with sigma 1/2.",
        "When the number of new combinations grows faster or slower than the square root of the sample.",
    ),
    Entry(
        "zayatz",
        f"{_SUPERPOPULATION}.zayatz:Zayatz",
        "Zayatz (1991), Statistical Research Division Report, US Bureau of the Census",
        "As a quick benchmark that needs no likelihood, with large sampling fractions.",
        "With small sampling fractions: a sample has smaller cells than its population, so risk is overstated.",
    ),
    Entry(
        "benedetti-franconi",
        "keyhole.models.individual_risk.benedetti_franconi:BenedettiFranconi",
        "Benedetti & Franconi (1998), New Techniques and Technologies for Statistics; "
        "Franconi & Polettini (2004), Lecture Notes in Computer Science 3050",
        "When survey weights are the only thing known about the population; gives each record a risk of its own.",
        "For rare combinations: nothing but a record's own weight is used, so without weights r1 = n/N.",
    ),
)

CATALOGUE: Mapping[str, Entry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
"""Every model by name, in the order in which they are shown."""
