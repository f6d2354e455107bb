"""`python -m tools GROUP COMMAND …`: the one command line of all host tools.

Group NAME is the click object `cli` in `tools/NAME/cli.py` or `tools/NAME.py`;
`python -m host_tests` finds those of `host_tests/` in the same way.
It is imported only when it is used, so a missing dependency of one group (Java
for the pipeline, say) never stops another; the list of groups reads docstrings.
"""

import ast
import importlib
import os
import re
import sys
from pathlib import Path

_TOOLS = Path(__file__).parent
_VENV = _TOOLS.parent / ".venv"
# `python -m NAME` sets argv[0] to the path of NAME/__main__.py.
_STARTED = "host_tests" if Path(sys.argv[0]).parent.name == "host_tests" else "tools"
IS_INSTALLED = not (_TOOLS.parent / "Makefile").exists()  # from the wheel


def go_on_in_venv() -> None:
    """Start again with the Python of the project's environment; returns when this is it."""
    program = _VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if program.exists() and not os.path.samefile(sys.prefix, _VENV):
        os.execv(program, [str(program), "-m", _STARTED, *sys.argv[1:]])


try:
    import click
except ModuleNotFoundError:
    go_on_in_venv()
    sys.exit("Error: the tools need the Python package 'click': run `make setup`")


def find_groups(folder: Path) -> dict[str, Path]:
    """The groups in `folder`: name -> the file that holds its `cli`, imported by nobody yet."""
    found = {path.parent.name: path for path in folder.glob("*/cli.py")}
    found |= {path.stem: path for path in folder.glob("*.py") if _defines_cli(path)}
    return dict(sorted(found.items()))


def _defines_cli(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return not path.name.startswith("_") and bool(re.search(r"^(def )?cli\b", text, re.MULTILINE))


def summary(path: Path) -> str:
    """The first line of the docstring of the group in `path`, its package's where it has one."""
    package = path.with_name("__init__.py")
    source = package if path.name == "cli.py" and package.exists() else path
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


def remedy(group: str) -> str:
    return f"pip install 'umqtt31[{group}]'" if IS_INSTALLED else "make setup"


class LazyGroup(click.Group):
    """A click group whose subcommands are found by `find_groups` and imported when used."""

    @property
    def folder(self) -> Path:
        """Where the groups lie; its name is their package's."""
        return _TOOLS

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(find_groups(self.folder))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        path = find_groups(self.folder).get(cmd_name)
        if path is None:
            return None
        package = self.folder.name
        parts = path.relative_to(self.folder).with_suffix("").parts
        try:
            module = importlib.import_module(".".join((package, *parts)))
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] == package:
                raise
            go_on_in_venv()
            raise click.ClickException(
                f"{cmd_name} needs the Python package {error.name!r}: run `{remedy(cmd_name)}`"
            ) from error
        command: click.Command = module.cli
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Groups"):
            groups = find_groups(self.folder).items()
            formatter.write_dl([(name, summary(path)) for name, path in groups])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Host tools of umqtt31. GROUP --help says more; `make` lists the usual commands.",
)
def main() -> None:
    pass


if __name__ == "__main__":
    main(prog_name="python -m tools")
