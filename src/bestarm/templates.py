"""Where an arm's id may stand in a person's command, and the line that a shell is given for it.

No id is ever part of that line. It is in the environment, and a word {id} becomes "$BESTARM_ID", which the shell passes
on as one argument. What is left to refuse are programs that run an argument, or what they read, as `sh -c` does:

- {id} is refused wherever one of those could get it, and where a line is too involved to see that none does;
- "$BESTARM_ID", which people write on purpose, is refused only where it surely is such text, and outside quotes.

A program that is not named here is trusted to take its arguments for data.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bestarm.errors import InputError

ID = ("{id}", "'{id}'", '"{id}"')
SAFE = '"$BESTARM_ID"'
LONGEST = 100_000  # bytes of an id; systems give a program little more in one argument
WAY = f"write {SAFE}, which holds the id, in its place, or let the program read BESTARM_ID from its environment"
TEXT = f"let the program read the variable itself, as in sh -c './measure {SAFE}' in single quotes, or in a script"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHELLS = _words("sh bash dash zsh ksh mksh ash fish csh tcsh rbash")
# What runs the script that its first argument names, and without one what it reads.
INTERPRETERS = SHELLS | _words(
    ". source python pypy ipython perl ruby node nodejs deno bun php rscript r lua luajit julia octave scala groovy "
    "elixir tclsh wish guile racket osascript pwsh"
)
# What runs the command that its arguments are, as they are.
RUNNERS = _words(
    "env sudo doas nohup nice ionice chrt timeout gtimeout exec command builtin time setsid stdbuf strace taskset "
    "numactl caffeinate srun mpirun mpiexec xvfb-run busybox sshpass"
)
# What takes its arguments, or what it reads, for a program: refused in a line with {id}.
EVALUATORS = _words(
    "eval alias ssh rsh qrsh slogin mosh pdsh pssh clush ansible adb bsub xargs parallel su runuser watch watchexec at "
    "batch crontab hyperfine nodemon concurrently zx entr tmux screen xterm expect sqlite psql mysql mariadb duckdb "
    "gdb gnuplot m4 dc sftp ftp lftp ed ex vi vim emacs cmd powershell matlab"
)
# What takes an argument for a program, a command of its own, or another machine's: refused with {id} as an argument.
INVOLVED = _words(
    "awk gawk mawk nawk sed gsed make gmake just npm npx yarn pnpm conda mamba hatch pixi tox nix nix-shell chroot "
    "flock unshare nsenter systemd-run scp rsync"
)
BUILTINS = _words("set let declare typeset local export readonly read unset getopts mapfile readarray trap test printf")
INSIDE = _words("sh bash dash zsh ksh ssh xargs")  # as in `docker exec box sh -c`: refused before {id} in any command
MOVING = _words("cd pushd popd . source export alias eval module set hash")  # after which names mean something else
RESERVED = _words("if then else elif fi do done while until for case esac in { } ! [[ function select coproc")

# Options whose value is a program: of any command, and of interpreters.
_CODE = re.compile(r"-[A-Za-z]{0,2}[ceS]|-(exec|execdir|ok|okdir)|--?(command|eval|exec|execute|rsh|wrap|split-string)")
_PROGRAM = re.compile(r"-\w*[ceEp]")
# Options of interpreters that may stand before a script.
_FLAG = re.compile(r"-[Bmuvwx]+|--(login|posix|quiet|slave|vanilla|no[\w-]*)|--[\w-]+=.*", re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_EXPANDED = re.compile(r"\$\{?BESTARM_(ID|ARM)\b")
_QUOTED = re.compile(r"""'[^']*'|\\.|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_CALL = r"""\$\([^(){}'"`\\]*\)"""  # as $(date +%s), without {id}, quotes and anything nested
_PIECE = rf"""'[^']*' | "(?: [^"\\`$] | \\[^\n] | \$\{{\w+\}} | {_CALL} | \$(?![({{`\[]) )*"
  | \\[^\n] | \$\{{\w+\}} | {_CALL} | \$(?![({{\['"`]) | [^\s'"\\;&|<>()`$]"""
_TOKEN = re.compile(
    rf"""(?P<blank> (?: [ \t] | (?<=[ \t])\\\n(?=[ \t]) )+ ) | (?P<comment> \#[^\n]* ) | (?P<word> (?: {_PIECE} )+ )
  | (?P<file> >> | <& | >& | <> | >\| | <(?!<) | > ) | (?P<end> \n | && | \|\| | [;&|] )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Template:
    """A command that may be run for any id: its line for the shell, and whether the id is an argument in it."""

    text: str
    line: str
    argument: bool


@dataclass(frozen=True)
class Word:
    """A word of a command: as it is written, and where."""

    raw: str
    start: int

    @property
    def text(self) -> str:
        """The word as the shell passes it on, but for what it expands."""
        return _QUOTED.sub(lambda found: _unquoted(found[0]), self.raw)

    @property
    def name(self) -> str:
        """The program it calls, without folder and version: python for /usr/bin/python3.11; ./screen is one's own."""
        last = self.text.rsplit("/", 1)[-1].lower()
        name = last if last in EVALUATORS else re.sub(r"(?<=[a-z])[-.\d]+$", "", last.removesuffix(".exe"))
        return "" if self.text.startswith("./") and name not in INTERPRETERS else name

    @property
    def plain(self) -> bool:
        """Whether it says which program it calls."""
        last = re.sub(_CALL, "$", self.raw).rsplit("/", 1)[-1]
        return self.raw not in RESERVED and not re.search(r"[$*?\[{]", last)

    @property
    def expanded(self) -> bool:
        """Whether the shell puts the id in."""
        live = _QUOTED.sub(lambda found: re.sub(r"\\.", " ", found[0]) if found[0][0] == '"' else " ", self.raw)
        return bool(_EXPANDED.search(live))

    @property
    def split(self) -> bool:
        """Whether the shell then splits it at blanks."""
        return bool(_EXPANDED.search(_QUOTED.sub(" ", self.raw))) and not _ASSIGNMENT.match(self.raw)


def prepare(text: str) -> Template:
    """Return the line to run for a person's `text`, or raise InputError where an id in it would not be safe.

    >>> prepare("./measure {id} --fast").line
    './measure "$BESTARM_ID" --fast'
    """
    if "\0" in text:
        raise InputError("a pull command cannot contain a NUL character")
    if not re.search(r"\{id\}|BESTARM_(ID|ARM)", text):
        raise InputError(
            f"a pull command must contain {{id}}, where the arm's id goes, or {SAFE}; given {text!r}; a command that "
            "reads BESTARM_ID from its environment by itself may say so in a comment: './measure # BESTARM_ID'"
        )
    try:
        commands = list(_commands(text))
    except InputError:
        if "{id}" in text:
            raise
        return Template(text, text, False)  # involved, and on purpose
    for command in commands:
        _check_variable(text, command)
    line = text
    for word in reversed([word for command in commands for word in command if word.raw in ID]):
        line = line[: word.start] + SAFE + line[word.start + len(word.raw) :]
    if line != text:
        for command in commands:
            _check(text, command)
    return Template(text, line, line != text)


def programs(template: Template) -> list[tuple[str, bool]]:
    """Return what a command calls, and of each whether it is an interpreter's script, as far as that is plain.

    >>> programs(prepare("nice ./measure {id} | python3 last.py"))
    [('./measure', False), ('python3', False), ('last.py', True)]
    """
    found: list[tuple[str, bool]] = []
    try:
        commands = list(_commands(template.text))
    except InputError:
        return found
    for command in commands:
        words = list(command)
        while words and (_ASSIGNMENT.match(words[0].raw) or words[0].name in RUNNERS):
            if words[0].raw.startswith("PATH="):
                return found
            words.pop(0)
        if not words or not words[0].plain or words[0].text[:1] in "-~0123456789" or "$" in words[0].raw:
            continue
        if words[0].text in MOVING:
            return found
        found.append((words[0].text, False))
        script = words[1] if len(words) > 1 and words[0].name in INTERPRETERS else words[0]
        said = script.plain and "$" not in script.raw and script.text[:1] not in "-~"
        if script is not words[0] and said and Path(script.text).suffix:
            found.append((script.text, True))
    return found


def check_ids(template: Template, ids: Iterable[str]) -> None:
    """Raise InputError for the first id that `template` cannot be run for.

    >>> check_ids(prepare("./measure {id}"), ["a1", "-rf"])
    Traceback (most recent call last):
    ...
    bestarm.errors.InputError: arm '-rf' begins with '-', so './measure {id}' could take it for an option; let the \
program read BESTARM_ID from its environment, or write -- "$BESTARM_ID" where it knows --
    """
    for id in ids:
        named = f"arm {shortened(id)!r}"
        try:
            size = len(id.encode("utf-8", "surrogateescape"))
        except UnicodeEncodeError as error:
            raise InputError(f"{named} is not text that a command can be given: {error.reason}") from error
        if "\0" in id:
            raise InputError(f"{named} contains a NUL character, which no command can be given")
        if size > LONGEST:
            raise InputError(f"{named} has {size:,} bytes; a command can be given {LONGEST:,}")
        if template.argument and id.startswith("-"):
            raise InputError(
                f"{named} begins with '-', so {template.text!r} could take it for an option; let the program read "
                f"BESTARM_ID from its environment, or write -- {SAFE} where it knows --"
            )


def shortened(text: str, most: int = 80) -> str:
    """Return the beginning of a text that is long."""
    return text if len(text) <= most else text[: most - 3] + "..."


def _refusal(text: str, where: str, way: str = WAY) -> InputError:
    return InputError(f"in the pull command {text!r} {where}; {way}")


def _commands(text: str) -> Iterator[list[Word]]:
    """Yield the simple commands of a line, without their redirections; refuse what is more than such commands."""
    command: list[Word] = []
    target, at = False, 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _refusal(text, f"{{id}} stands in one line with {text[at : at + 12]!r}, too involved to look through")
        kind, raw = found.lastgroup, found[0]
        if kind == "word":
            if "{id}" in raw and (target or raw not in ID):
                place = "the file of a redirection" if raw in ID else f"part of {raw!r}"
                raise _refusal(text, f"{{id}} must be a word of its own, as in './measure {{id}}', not {place}")
            if not target:
                command.append(Word(raw, at))
            target = False
        elif kind == "file":
            if command and command[-1].raw.isdecimal() and command[-1].start + len(command[-1].raw) == at:
                command.pop()  # 2> is one operator
            target = True
        elif kind == "end":
            yield command
            command, target = [], False
        at = found.end()
    yield command


def _check(text: str, command: list[Word]) -> None:
    """Refuse a command with {id} that could run it, and one beside it that could run what the other prints."""
    ids = [i for i, word in enumerate(command) if word.raw in ID]
    words = command[: ids[0]] if ids else command
    at = _program(words)
    if at == len(words):
        if ids or not all(_ASSIGNMENT.match(word.raw) for word in words):
            raise _refusal(text, "{id} would be the command itself" if ids else f"{words[-1].raw!r} names no program")
        return
    program, rest = words[at], words[at + 1 :]
    if not program.plain:
        raise _refusal(text, f"{{id}} stands in one line with {program.raw!r}, too involved to look through")
    for word in words[: at + 1]:
        given = ids and (word.name in INVOLVED or word.text in BUILTINS)
        if given or word.name in EVALUATORS or (word.name in SHELLS and word is not program):
            raise _refusal(text, f"{{id}} meets {word.text!r}, after which text may be taken for a program", TEXT)
    if program.name in INTERPRETERS:
        code = not ids and any(_PROGRAM.fullmatch(word.text) for word in rest[:-1])
        if not code and not _has_script(rest):
            raise _refusal(text, f"{{id}} meets {program.text!r} without a script between them", TEXT)
        return
    for i in ids:
        for word in command[at + 1 : i]:
            if word.name in INSIDE or (word is command[i - 1] and _CODE.fullmatch(word.text)):
                raise _refusal(text, f"{{id}} meets {word.text!r}, after which text may be taken for a program", TEXT)


def _program(words: list[Word]) -> int:
    """Return where the program is that `words` call, past settings and what runs it, such as `nice -n 5`."""
    value = False
    for at, word in enumerate(words):
        option = word.text.startswith("-")
        known = word.name in RUNNERS or _ASSIGNMENT.match(word.text) or re.fullmatch(r"\d[\w.:-]*", word.text)
        if not (option or known or value):
            return at
        value = bool(re.fullmatch(r"-\w|--[\w-]+", word.text))
    return len(words)


def _has_script(rest: list[Word]) -> bool:
    """Return whether an interpreter called with `rest` runs a script, and no text or input."""
    for word in rest:
        if not _FLAG.fullmatch(word.text):
            return not word.text.startswith(("-", "+", "/dev/", "/proc/")) and word.text != "timeit"
    return False


def _check_variable(text: str, command: list[Word]) -> None:
    """Refuse $BESTARM_ID where the shell would split it, or put it into a program's text."""
    for at, word in enumerate(command):
        if not word.expanded:
            continue
        if word.split:
            raise _refusal(text, f"$BESTARM_ID stands outside of double quotes in {word.raw!r}", f"write {SAFE}")
        before = command[:at]
        called = {w.name for w in before[: _program(before) + 1]}
        inside = {w.name for w in before[-2:-1]} & SHELLS  # as in `docker exec box sh -c`
        code = bool(before and _CODE.fullmatch(before[-1].text)) and (inside or called & (INTERPRETERS | {"env"}))
        if code or called & EVALUATORS or (called & INVOLVED and word.raw != SAFE):
            raise _refusal(text, f"the id becomes text that {before[0].text!r} takes for a program", TEXT)


def _unquoted(piece: str) -> str:
    if piece[0] == "'":
        return piece[1:-1]
    if piece[0] == '"':
        return re.sub(r"\\([$`\"\\])", r"\1", piece[1:-1])
    return piece[1:]
