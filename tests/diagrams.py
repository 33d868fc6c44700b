"""Draw the diagrams of the pages: an estate, the order of the rules, the flow of tables, and a path that fails.

``python -m tests.diagrams`` writes them. Each is an SVG that loads nothing. It stands on a card of its own, whose
colours follow a dark setting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from tests.pages import ROOT

FOLDER = ROOT / "docs" / "images"
_WIDTH, _LINE = 960, 20
_STYLE = """
    .card { fill: #f7f8fa; stroke: #d5dae1 } .box { fill: #ffffff; stroke: #59636e } .ink { fill: #1f2328 }
    .dim { fill: #59636e } .line { stroke: #59636e; fill: none }
    .good { stroke: #1a7f37 } .bad { stroke: #cf222e } .says-good { fill: #1a7f37 } .says-bad { fill: #cf222e }
    @media (prefers-color-scheme: dark) {
      .card { fill: #161b22; stroke: #30363d } .box { fill: #0d1117; stroke: #8b949e } .ink { fill: #e6edf3 }
      .dim { fill: #9ea7b3 } .line { stroke: #8b949e }
      .good { stroke: #3fb950 } .bad { stroke: #ff7b72 } .says-good { fill: #3fb950 } .says-bad { fill: #ff7b72 }
    }
"""


@dataclass
class Diagram:
    """An SVG that grows by boxes, arrows and words. ``title`` says what it shows."""

    title: str
    height: int
    parts: list[str] = field(default_factory=list)

    def write(
        self, x: int, y: int, text: str, kind: str = "ink", *, size: int = 14, is_bold: bool = False
    ) -> None:
        """Add a line of text whose left end is at x."""
        weight = ' font-weight="600"' if is_bold else ""
        self.parts.append(f'<text x="{x}" y="{y}" class="{kind}" font-size="{size}"{weight}>{escape(text)}</text>')

    def box(self, x: int, y: int, width: int, height: int, *lines: str, kind: str = "") -> None:
        """Add a box. Its first line is a heading."""
        size = f'x="{x}" y="{y}" width="{width}" height="{height}"'
        self.parts.append(f'<rect {size} rx="8" class="box {kind}" stroke-width="1.5"/>')
        for number, line in enumerate(lines):
            kind_of_text = "ink" if number == 0 else "dim"
            self.write(
                x + 14,
                y + 26 + number * _LINE,
                line,
                kind_of_text,
                size=14 if number == 0 else 13,
                is_bold=number == 0,
            )

    def arrow(self, points: Sequence[tuple[int, int]], kind: str = "", *, is_broken: bool = False) -> None:
        """Add a line with a tip at its last point; it comes from the left, the right or above."""
        path = "M" + " L".join(f"{x} {y}" for x, y in points)
        dashes = ' stroke-dasharray="6 4"' if is_broken else ""
        self.parts.append(f'<path d="{path}" class="line {kind}" stroke-width="2"{dashes}/>')
        (x1, _), (x2, y2) = points[-2:]
        if x1 == x2:
            tip = f"M{x2 - 6} {y2 - 9} L{x2} {y2} L{x2 + 6} {y2 - 9}"
        else:
            back = -9 if x2 > x1 else 9
            tip = f"M{x2 + back} {y2 - 6} L{x2} {y2} L{x2 + back} {y2 + 6}"
        self.parts.append(f'<path d="{tip}" class="line {kind}" stroke-width="2"/>')

    def render(self) -> str:
        """Return the SVG."""
        inner = "\n  ".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {self.height}" width="{_WIDTH}"'
            f' height="{self.height}" role="img" aria-labelledby="title"'
            ' font-family="Segoe UI, Helvetica, Arial, sans-serif">\n'
            f'  <title id="title">{escape(self.title)}</title>\n  <style>{_STYLE}  </style>\n'
            f'  <rect x="1" y="1" width="{_WIDTH - 2}" height="{self.height - 2}" rx="10" class="card"/>\n'
            f"  {inner}\n</svg>\n"
        )


def draw_estate() -> Diagram:
    """Draw the example estate: instances, their databases, and the routes between them."""
    picture = Diagram("An estate of three instances: SHOP sends to STOCK by way of HUB, which forwards", 300)
    for x, name, role in ((24, "SHOP", "sends"), (364, "HUB", "forwards"), (700, "STOCK", "receives")):
        width = 250 if name == "HUB" else 236
        picture.box(x, 24, width, 200, f"Instance {name}", f"{role}; endpoint at port 4022")
    picture.box(
        40, 96, 204, 108, "Database Orders", "service //orders", "route ToStockA", "sys.transmission_queue"
    )
    picture.box(380, 96, 218, 108, "Database msdb", "routes Stock and Orders", "forwarding is on")
    picture.box(716, 80, 204, 60, "Database msdb", "route AutoCreatedLocal")
    picture.box(716, 156, 204, 60, "Database StockA", "service //stock")
    picture.arrow([(244, 140), (380, 140)], "good")
    picture.write(268, 130, "ToStockA", "dim", size=13)
    picture.arrow([(598, 112), (716, 112)], "good")
    picture.write(622, 104, "Stock", "dim", size=13)
    picture.arrow([(818, 140), (818, 156)], "good")
    picture.arrow([(716, 194), (598, 194)])
    picture.arrow([(380, 194), (244, 194)])
    picture.write(268, 186, "Orders", "dim", size=13)
    picture.write(616, 186, "ToOrders", "dim", size=13)
    picture.write(24, 256, "A message takes a route of the database that sends it.", is_bold=True)
    picture.write(
        24, 278, "Where it arrives, the routes of msdb decide. The acknowledgement needs routes back.", "dim"
    )
    return picture


_STEPS = (
    ("Expired", "Is the lifetime of the dialog over?", "DROPPED, DIALOG_EXPIRED"),
    ("Broker", "Is the broker of the database off whose routes are searched?", "DELAYED, SCOPE_BROKER_DISABLED"),
    ("Step 1", "bound: routes with the service and the broker instance", "section 3"),
    ("Step 2", "routes with the service, without a broker instance", "section 3"),
    ("Step 3", "open: routes with the service and a broker instance; a hash picks one", "section 3"),
    ("Step 4", "a route to the BrokerConfiguration service, and no pending request", "DELAYED, ROUTE_REQUESTED"),
    ("Step 5", "routes for any service, such as AutoCreatedLocal", "section 3"),
    ("Step 6", "bound, and a database here holds the service", "section 3"),
    ("Step 7", "nothing found", "DELAYED, NO_ROUTE"),
)


def draw_rules() -> Diagram:
    """Draw the order in which the rules are asked for a message that was sent here."""
    top, step = 24, 46
    picture = Diagram(
        "The order of the rules: the first line that applies to a message decides", top + 9 * step + 92
    )
    for number, (name, condition, result) in enumerate(_STEPS):
        y = top + number * step
        picture.box(24, y, 580, 36)
        picture.write(40, y + 23, name, is_bold=True)
        picture.write(116, y + 23, condition, size=13)
        is_end = result != "section 3"
        picture.arrow([(604, y + 18), (664, y + 18)], "bad" if is_end else "good")
        if is_end:
            picture.write(676, y + 23, result, "says-bad", size=13)
        else:
            picture.write(676, y + 23, "choose among these routes", "says-good", size=13)
        if number:
            picture.arrow([(60, y - 10), (60, y)])
    y = top + 9 * step + 14
    picture.box(
        24,
        y,
        912,
        62,
        "Choose: the first of these that can be used",
        "A mirrored address   ·   B LOCAL, if a database"
        " here takes the message   ·   C a network address   ·   D TRANSPORT",
    )
    return picture


def draw_tables() -> Diagram:
    """Draw how rows flow from SQL Server's views into tables, and from there into answers."""
    picture = Diagram(
        "The flow of tables: exports become input tables, runs write outputs, commands read them", 350
    )
    picture.box(
        24,
        24,
        190,
        136,
        "SQL Server",
        "sys.routes",
        "sys.transmission_queue",
        "other catalog views",
        "T-SQL scripts",
    )
    picture.arrow([(214, 92), (262, 92)])
    picture.box(262, 50, 130, 84, "Exports", "one folder", "of files")
    picture.arrow([(392, 92), (452, 92)])
    picture.write(396, 82, "import", "dim", size=13)
    picture.box(
        452,
        24,
        206,
        156,
        "Input tables",
        "routes",
        "databases, services",
        "instances",
        "messages, dialogs",
        "route_requests",
    )
    picture.arrow([(658, 92), (724, 92)])
    picture.write(666, 82, "resolve", "dim", size=13)
    picture.box(
        724,
        24,
        212,
        156,
        "Output tables",
        "resolved_routes",
        "rejected_messages",
        "new_route_requests",
        "current_routes",
        "runs",
    )
    picture.arrow([(327, 134), (327, 236)], "good")
    picture.box(
        240, 236, 250, 84, "Answers without tables", "check, lint PATH", "one command, no Java", kind="good"
    )
    picture.arrow([(830, 180), (830, 236)], "good")
    picture.arrow([(555, 180), (555, 278), (610, 278)], "good")
    picture.box(
        610,
        236,
        326,
        84,
        "Answers from tables",
        "messages, explain, trace, lint",
        "diff, reconcile, report",
        kind="good",
    )
    return picture


def draw_path() -> Diagram:
    """Draw the path of a message that arrives, and whose acknowledgement does not come back."""
    picture = Diagram(
        "A path with its failing hop: the message arrives, and its acknowledgement finds no route", 330
    )
    picture.write(24, 40, "There", is_bold=True)
    picture.box(24, 56, 250, 84, "SHOP, database Orders", "route ToStock", "SENT", kind="good")
    picture.arrow([(274, 98), (364, 98)], "good")
    picture.box(364, 56, 250, 84, "STOCK, database msdb", "route AutoCreatedLocal", "DELIVERED", kind="good")
    picture.arrow([(614, 98), (690, 98)], "good")
    picture.box(690, 56, 246, 84, "STOCK, database Stock", "service //stock", "has the message", kind="good")
    picture.write(24, 186, "And back, the acknowledgement", is_bold=True)
    picture.box(
        690,
        202,
        246,
        104,
        "STOCK, database Stock",
        "route AutoCreatedLocal",
        "looks only in this instance",
        "DELAYED",
        kind="bad",
    )
    picture.arrow([(690, 254), (646, 254)], "bad", is_broken=True)
    picture.write(364, 248, "✗ BROKER_INSTANCE_NOT_FOUND", "says-bad", is_bold=True)
    picture.write(364, 270, "no route of Stock names //orders", "says-bad", size=13)
    picture.box(
        24, 212, 250, 84, "SHOP, database Orders", "keeps the message", "sends it again and again", kind="bad"
    )
    return picture


DIAGRAMS: Mapping[str, Callable[[], Diagram]] = {
    "estate": draw_estate,
    "rules": draw_rules,
    "tables": draw_tables,
    "path": draw_path,
}
"""What draws each picture, by the name of its file."""


def write_diagrams() -> None:
    """Write every diagram."""
    for name, draw in DIAGRAMS.items():
        (FOLDER / f"{name}.svg").write_text(draw().render(), encoding="utf-8")


if __name__ == "__main__":
    write_diagrams()
