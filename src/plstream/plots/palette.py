"""Colours and markers of all plots, in matplotlib and in Plotly, for light and dark backgrounds.

The colours of classes are safe for colour-blind readers, and have enough contrast on both backgrounds. Ink, paper,
faint and grid follow the enclosing HTML report.
"""

INK, PAPER, FAINT, GRID = "#1b1f24", "#ffffff", "#5c6670", "#d7dce1"
CLASSES = ("#0460bd", "#d88700", "#0faaac", "#9f480a", "#614cff", "#726440", "#3aa2d5", "#a39b60", "#1d7168", INK)
CLASS_MARKERS = ("o", "^", "s", "v", "D", "P", "X", "h", "<", ">")
# Low, middle and high values.
SCALE = ("#d98200", "#c2405f", "#3b1470")

# The colours of an HTML report by CSS variable, as used in Plotly figures.
LIGHT = {
    "--ink": INK,
    "--paper": PAPER,
    "--faint": FAINT,
    "--grid": GRID,
    "--shade": "#f3f5f7",
    "--yes": "#17703a",
    "--partly": "#8a5a00",
    "--no": "#b3261e",
    "--open": FAINT,
    **{f"--c{i}": colour for i, colour in enumerate(CLASSES)},
    **{f"--s{i}": colour for i, colour in enumerate(SCALE)},
}
DARK = LIGHT | {
    "--ink": "#e6e9ec",
    "--paper": "#16191d",
    "--faint": "#a3adb7",
    "--grid": "#363c43",
    "--shade": "#1f2429",
    "--yes": "#63c98b",
    "--partly": "#e0b04e",
    "--no": "#ff9389",
    "--open": "#a3adb7",
    # The last class has the colour of ink.
    f"--c{len(CLASSES) - 1}": "#e6e9ec",
    "--s0": "#9168d0",
    "--s1": "#e2637d",
    "--s2": "#ffd27a",
}
