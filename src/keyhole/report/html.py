"""The report as one self-contained web page: no script, no network, nothing beside the file."""

from importlib.resources import files

from keyhole.report import words
from keyhole.report.agreement import POOR_FIT, misfit_figure
from keyhole.report.content import Report
from keyhole.report.dependence import odds
from keyhole.report.levels import FEW_RECORDS
from keyhole.report.matrix import MOST_KEYS
from keyhole.report.pictures import draw

MARKS = {"good": "fine", "caution": "caution", "untrusted": "alarm"}
SAYINGS = (
    words.rounded, words.percent, words.duration, words.count, words.plural, words.between, words.large,
    words.figure_of, words.shortened, misfit_figure, words.span,
    words.listed, odds,
)  # fmt: skip


def render_html(report: Report) -> str:
    """The report as HTML, complete in itself.

    Labels come from the data and may hold anything; the template escapes all of them.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {say.__name__: say for say in SAYINGS}
    # The drawings escape their own labels and the style sheet is ours, so both go in as they are.
    pictures = {name: picture.marked(Markup) for name, picture in draw(report).items()}
    folder = files("keyhole.report") / "templates"
    template = environment.from_string((folder / "report.html.j2").read_text("utf-8"))
    style = Markup((folder / "report.css").read_text("utf-8"))
    return template.render(
        report=report,
        pictures=pictures,
        style=style,
        mark=MARKS,
        few=FEW_RECORDS,
        poor=POOR_FIT,
        most_keys=MOST_KEYS,
    )
