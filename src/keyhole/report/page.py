"""A web page from a template: complete in itself, with the style sheet of all reports."""

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files

from keyhole.report.pictures import Picture


def render_page(
    template: str, *, pictures: Mapping[str, Picture], sayings: Sequence[Callable[..., str]], **content: object
) -> str:
    """The page that a template makes of ``content``; what is not a drawing or the style sheet is escaped.

    Parameters
    ----------
    template
        Its name in the folder of templates.
    sayings
        The functions that the template calls to say a number.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    folder = files("keyhole.report") / "templates"
    environment = Environment(
        loader=FunctionLoader(lambda name: (folder / name).read_text("utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {say.__name__: say for say in sayings}
    # The drawings escape their own labels and the style sheet is ours, so both go in as they are.
    return environment.get_template(template).render(
        pictures={name: picture.marked(Markup) for name, picture in pictures.items()},
        style=Markup((folder / "report.css").read_text("utf-8")),
        **content,
    )
