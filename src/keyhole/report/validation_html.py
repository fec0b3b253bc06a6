"""A validation as one self-contained web page: no script, no network, nothing beside the file."""

from keyhole.report import words
from keyhole.report.page import render_page
from keyhole.report.validation_content import ValidationReport
from keyhole.report.validation_pictures import caption_of_panels, draw_validation


def render_validation_html(content: ValidationReport) -> str:
    """The page as HTML, complete in itself; the template escapes all labels."""
    return render_page(
        "validation.html.j2",
        pictures=draw_validation(content.sizes),
        sayings=(words.count, words.plural, words.shortened, words.duration, words.figure_of),
        report=content,
        left_out=caption_of_panels,
    )
