"""Several hundred overlapping rules about people, made from a handful of common-sense statements."""

from keyhole.keys.variable import KeyVariable

AGES = (*(f"{low}-{low + 4}" for low in range(0, 95, 5)), "95+")
SCHOOL = ("none", "nursery", "primary", "lower", "upper", "diploma", "college", "bachelor", "master", "doctor")
OCCUPATIONS = ("no job", "manager", "professional", "nurse", "clerk", "sales", "craft", "driver", "farm", "army")
INDUSTRIES = ("no job", *(f"industry {letter}" for letter in "ABCDEFGHIJKL"))

KEYS = (
    KeyVariable("AGE", AGES),
    KeyVariable("SEX", ("female", "male")),
    KeyVariable("MARITAL", ("single", "married", "separated", "divorced", "widowed")),
    KeyVariable("EDUCATION", SCHOOL),
    KeyVariable("EMPLOYMENT", ("child", "student", "employed", "self-employed", "unemployed", "retired", "home")),
    KeyVariable("OCCUPATION", OCCUPATIONS),
    KeyVariable("INDUSTRY", INDUSTRIES),
    KeyVariable("HOUSEHOLD", ("head", "spouse", "child", "parent", "other")),
    KeyVariable("BIRTHS", ("not asked", "0", "1", "2", "3", "4", "5+")),
    KeyVariable("INCOME", ("not asked", "0", *(f"band {band}" for band in range(1, 11)))),
)

FIRST_BAND = {"primary": 1, "lower": 2, "upper": 3, "college": 3, "bachelor": 4, "master": 4, "doctor": 5}
"""The first age band in which a level of schooling can have been reached."""

Rule = dict[str, object]


def person_rules() -> list[Rule]:
    """One rule for each pair of a statement's levels, as clerks write them: long, repetitive and overlapping."""
    rules: list[Rule] = []
    for age in AGES[:3]:
        rules += [{"AGE": age, "MARITAL": status} for status in ("married", "separated", "divorced", "widowed")]
        rules += [{"AGE": age, "OCCUPATION": job} for job in OCCUPATIONS[1:]]
        rules += [{"AGE": age, "INDUSTRY": industry} for industry in INDUSTRIES[1:]]
        rules += [{"AGE": age, "HOUSEHOLD": role} for role in ("head", "spouse", "parent")]
        rules += [{"AGE": age, "BIRTHS": {"not": ["not asked"]}}, {"AGE": age, "INCOME": {"not": ["not asked"]}}]
        rules += [{"AGE": age, "EMPLOYMENT": {"not": ["child"]}}]
    rules += [{"AGE": age, "EMPLOYMENT": "child"} for age in AGES[3:]]
    rules += [{"AGE": age, "INCOME": "not asked"} for age in AGES[3:]]
    rules += [{"AGE": age, "EMPLOYMENT": "retired"} for age in AGES[3:9]]
    for level, first in FIRST_BAND.items():
        rules += [{"AGE": age, "EDUCATION": level} for age in AGES[:first]]
    for job in OCCUPATIONS[1:]:
        rules += [{"OCCUPATION": job, "INDUSTRY": "no job"}]
        rules += [{"OCCUPATION": job, "EMPLOYMENT": state} for state in ("child", "student", "retired", "home")]
    for industry in INDUSTRIES[1:]:
        rules += [{"OCCUPATION": "no job", "INDUSTRY": industry}]
        rules += [{"INDUSTRY": industry, "EMPLOYMENT": state} for state in ("child", "student", "retired", "home")]
    for state in ("employed", "self-employed"):
        rules += [{"EMPLOYMENT": state, "OCCUPATION": "no job"}, {"EMPLOYMENT": state, "INCOME": "0"}]
    for births in ("0", "1", "2", "3", "4", "5+"):
        rules += [{"SEX": "male", "BIRTHS": births}]
    rules += [{"SEX": "female", "AGE": age, "BIRTHS": "not asked"} for age in AGES[3:]]
    for index, births in enumerate(("3", "4", "5+")):
        rules += [{"AGE": AGES[3 + later], "BIRTHS": births} for later in range(index + 1)]
    rules += [{"HOUSEHOLD": "spouse", "MARITAL": {"not": ["married", "separated"]}}]
    rules += [{"HOUSEHOLD": "parent", "AGE": age} for age in AGES[3:7]]
    for level in SCHOOL[:4]:
        rules += [{"OCCUPATION": job, "EDUCATION": level} for job in ("manager", "professional", "nurse")]
    for age in AGES[3:5]:
        for level in ("bachelor", "master", "doctor"):
            rules += [{"AGE": age, "INCOME": f"band {band}", "EDUCATION": level} for band in range(6, 11)]
    for job, industry in (("farm", "A"), ("army", "L")):
        others = [name for name in INDUSTRIES[1:] if not name.endswith(industry)]
        rules += [{"OCCUPATION": job, "INDUSTRY": other, "INCOME": {"not": ["0"]}} for other in others]
    for idle in ("unemployed", "home", "student"):
        for age in AGES[3:9]:
            rules += [{"EMPLOYMENT": idle, "AGE": age, "INCOME": band} for band in ("band 9", "band 10")]
    for role, births in (("child", ("4", "5+")), ("other", ("5+",))):
        rules += [{"HOUSEHOLD": role, "BIRTHS": birth, "AGE": age} for birth in births for age in AGES[3:10]]
    for level in SCHOOL[2:]:
        rules += [{"EDUCATION": level, "EMPLOYMENT": "child", "AGE": age} for age in AGES[:3]]
    rules += [{"OCCUPATION": "army", "AGE": age} for age in AGES[13:]]
    rules += [
        {"EMPLOYMENT": ["student", "home"], "INCOME": f"band {band}", "AGE": list(AGES[3:6]), "HOUSEHOLD": "child"}
        for band in range(4, 11)
    ]
    return rules
