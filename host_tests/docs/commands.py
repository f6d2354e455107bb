"""A command line of a document, checked without being run: would the program take it?"""

import importlib.util
import os
import re
import shlex
import subprocess
from pathlib import Path

import click
import pyspark

from host_tests.__main__ import main as main_of_tests
from tools.__main__ import main
from tools.command import COMMANDS, options_of, place_of
from tools.project import ROOT

_SPARK = Path(pyspark.__file__).parent / "bin"
_ASSIGNMENT = re.compile(r"[A-Z_]+=.*")


def lines_in(block):
    """-> the commands of a block, continued lines joined, comments taken off; in one that shows a
    terminal they stand behind `$ `."""
    text = block.text
    if block.kind == "console":
        text = "\n".join(re.findall(r"^\$ (.*(?:\\\n.*)*)", text, re.MULTILINE))
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        found.append([])
        for word in shlex.split(line, comments=True):
            found[-1].append(word.removesuffix(";"))
            if word.endswith(";"):
                found.append([])
    return [words for words in found if words]


def check(words):
    """Raises AssertionError or click.UsageError for what would be refused."""
    while _ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    program, *arguments = words
    if program in _CHECKS:
        _CHECKS[program](arguments)
    elif program not in _RUN:
        _options_in_help(program, arguments)


# Each line of these is run as it stands (RUN in test_blocks.py), or there is nothing to check.
_RUN = {"mpremote", ".venv/bin/mpremote", "micropython", "mosquitto", "mosquitto_pub"}
_RUN |= {"spark-class", "export", "pip", "rm"}

_MAINS = {"tools": main, "host_tests": main_of_tests}


def _python(arguments):
    if arguments[0] != "-m":
        assert arguments[0].endswith(".py"), arguments  # a program of the page's own
    elif arguments[1] in _MAINS:
        _command(*arguments[1:])
    else:
        assert importlib.util.find_spec(arguments[1]), arguments


def _umqtt31(arguments):
    """As `make` and as its options: both are taken."""
    if arguments != ["--help"]:
        assert arguments[0] in COMMANDS, arguments
        _tools([*place_of(arguments[0]), *options_of(arguments[1:])])


def _tools(arguments):
    _command("tools", *arguments)


def _command(package, *arguments):
    command = _MAINS[package]
    context = click.Context(command, info_name=package)
    while isinstance(command, click.Group):
        name, *arguments = arguments
        command = command.get_command(context, name)
        assert command is not None, name
        context = click.Context(command, info_name=name, parent=context)
    given, _, _ = command.make_parser(context).parse_args(list(arguments))
    missing = [one.name for one in command.params if one.required and given.get(one.name) is None]
    assert missing == [], arguments


def _make(arguments):
    targets = [word for word in arguments if "=" not in word]
    assert targets, "make alone is no example"
    variables = [word for word in arguments if "=" in word]
    makefile = (ROOT / "Makefile").read_text()
    for target in targets:
        recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
        assert recipe, target
        for variable in variables:
            name = variable.partition("=")[0]
            assert re.search(rf"\({name}\)|call opt,{name},", recipe[1]), (target, name)
    # Without what `make test` itself was given.
    environment = {name: text for name, text in os.environ.items() if not name.startswith("M")}
    command = ["make", "--dry-run", *arguments]
    shown = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    for line in re.findall(r"^\S*python\S* -m (tools|host_tests) (.*)", shown, re.MULTILINE):
        _command(line[0], *shlex.split(line[1]))


def _spark_submit(arguments):
    assert (_SPARK / "spark-submit").exists()
    script = next(word for word in arguments if word.endswith(".py"))
    assert (ROOT / script).exists()
    _tools(["fleet", *arguments[arguments.index(script) + 1 :]])


def _options_in_help(program, arguments):
    done = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    known = done.stdout + done.stderr
    for word in arguments:
        if re.fullmatch(r"--?[a-zA-Z][a-z-]*", word):
            assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", known), (program, word)


_CHECKS = {
    "python": _python,
    "python3": _python,
    "make": _make,
    "spark-submit": _spark_submit,
    "umqtt31": _umqtt31,
}
