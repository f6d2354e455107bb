"""Figures as tables that a person reads."""

from collections.abc import Sequence

from rich import box
from rich.table import Table

from .figures import Figure


def make_table(title: str, figures: Sequence[Figure], peer: str = "simple") -> Table:
    """A rich table; `peer` heads the other's figures, those published for umqtt.simple
    1.8 stand in brackets."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True, min_width=22)
    for heading in ("umqtt31", "budget", "met", peer, "\\[1.8]", "bare"):
        table.add_column(heading, justify="right", no_wrap=True)
    for figure in figures:
        table.add_row(
            figure.title,
            _shown(figure.ours),
            _limit(figure),
            _verdict(figure),
            _shown(figure.peer),
            "" if figure.published is None else rf"\[{figure.published:,.0f}]",
            _shown(figure.bare),
        )
    return table


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _limit(figure: Figure) -> str:
    if figure.budget is None:
        return ""
    return f"{'≥' if figure.is_more_better else '≤'} {figure.budget:,.0f}"


def _verdict(figure: Figure) -> str:
    if figure.budget is None:
        return ""
    return "[green]yes[/]" if figure.is_met else "[red]no[/]"
