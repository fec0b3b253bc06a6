"""Colours of the pictures by their names in the style sheet."""

# matplotlib knows colours by number only, so each name of the style sheet has a number to be found again by.
COLOURS = {
    "ink": "#010101",
    "soft-ink": "#020202",
    "line": "#030303",
    "main": "#040404",
    "light": "#050505",
    "alarm": "#060606",
    "paper": "#070707",
}
