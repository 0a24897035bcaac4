"""Pictures of a night as inline SVG, on one time axis, linked to the findings.

picture.py  what the page gets of a picture
night.py    the night that is shown, its rows and its findings
scales.py   time and values -> places, numbers -> labels
spans.py    gaps and overlaps of time spans
drawing.py  shapes, words and links -> SVG; panels of rows below each other
every.py    all pictures in their order
The other modules draw a picture each. templates/pictures.css has their colours.
"""

from mqreplay.report.pictures.every import pictures
from mqreplay.report.pictures.picture import Picture

__all__ = ["Picture", "pictures"]
