"""What the programs a shell can start do, judged by their words.

A word is None when only the shell can know it: a variable, a glob, a substitution.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

ShellRisk: TypeAlias = Literal["read", "write", "network", "destructive", "unknown"]
Word: TypeAlias = str | None

RANK: Mapping[ShellRisk, int] = {"read": 0, "write": 1, "network": 2, "destructive": 3, "unknown": 4}

_READ = frozenset(
    [
        "ls",
        "cat",
        "head",
        "tail",
        "wc",
        "echo",
        "pwd",
        "cd",
        "grep",
        "egrep",
        "fgrep",
        "cut",
        "tr",
        "nl",
        "tac",
        "rev",
        "comm",
        "cmp",
        "diff",
        "md5sum",
        "sha1sum",
        "sha256sum",
        "sha512sum",
        "cksum",
        "seq",
        "true",
        "false",
        ":",
        "sleep",
        "basename",
        "dirname",
        "realpath",
        "readlink",
        "stat",
        "du",
        "df",
        "ps",
        "id",
        "whoami",
        "uname",
        "which",
        "type",
        "groups",
        "uptime",
        "free",
        "nproc",
        "arch",
        "hexdump",
        "od",
        "strings",
        "column",
        "fold",
        "expand",
        "printenv",
        "jq",
        "exit",
        "break",
        "continue",
    ]
)
_WRITE = frozenset(
    [
        "touch",
        "mkdir",
        "cp",
        "mv",
        "ln",
        "tee",
        "install",
        "chmod",
        "chown",
        "chgrp",
        "patch",
        "split",
        "gzip",
        "gunzip",
        "unzip",
        "mktemp",
    ]
)
_NETWORK = frozenset(
    [
        "curl",
        "wget",
        "ssh",
        "scp",
        "sftp",
        "rsync",
        "nc",
        "ncat",
        "telnet",
        "ftp",
        "ping",
        "dig",
        "nslookup",
        "traceroute",
        "pip",
        "pip3",
        "npm",
        "apt",
        "apt-get",
        "gh",
    ]
)
_DESTRUCTIVE = frozenset(
    [
        "rm",
        "rmdir",
        "shred",
        "dd",
        "mkfs",
        "truncate",
        "kill",
        "pkill",
        "killall",
        "shutdown",
        "reboot",
        "halt",
        "poweroff",
        "fdisk",
        "parted",
        "wipefs",
        "unlink",
        "userdel",
        "groupdel",
        "mkswap",
    ]
)
_GUARDED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "sort": ("o", ("--output", "--compress-program")),
    "tree": ("o", ()),
    "date": ("s", ("--set",)),
    "printf": ("v", ()),
    "file": ("C", ("--compile",)),
    "rg": ("", ("--pre", "--hostname-bin")),
    "test": ("vR", ()),
}
"""Programs that only read unless one of these letters or long options is given."""

_WRAPPERS: Mapping[str, tuple[frozenset[str], frozenset[str], int]] = {
    "sudo": (frozenset({"-n", "-H", "--"}), frozenset({"-u", "-g"}), 0),
    "doas": (frozenset({"-n"}), frozenset({"-u"}), 0),
    "env": (frozenset({"-i", "--"}), frozenset({"-u"}), 0),
    "nohup": (frozenset({"--"}), frozenset(), 0),
    "nice": (frozenset(), frozenset({"-n"}), 0),
    "setsid": (frozenset({"-w"}), frozenset(), 0),
    "time": (frozenset({"-p"}), frozenset(), 0),
    "timeout": (frozenset({"--foreground"}), frozenset({"-k", "-s"}), 1),
    "stdbuf": (frozenset({"-oL", "-o0", "-i0", "-eL"}), frozenset(), 0),
    "command": (frozenset({"--"}), frozenset(), 0),
    "builtin": (frozenset(), frozenset(), 0),
    "exec": (frozenset(), frozenset(), 0),
    "xargs": (frozenset({"-0", "-r", "-t", "--null"}), frozenset({"-n", "-P", "-L", "-d"}), 0),
}
"""Programs that start another: flags, options with a value, and arguments before its name."""

_GIT_READ = frozenset(
    [
        "status",
        "log",
        "diff",
        "show",
        "rev-parse",
        "ls-files",
        "blame",
        "describe",
        "shortlog",
        "ls-tree",
        "cat-file",
    ]
)
_GIT_NETWORK = frozenset(["push", "fetch", "pull", "clone", "ls-remote"])
_GIT_DESTRUCTIVE = frozenset(["reset", "clean", "rm", "gc", "prune", "filter-branch", "reflog"])
_GIT_WRITE = frozenset(
    ["add", "commit", "checkout", "switch", "merge", "stash", "tag", "branch", "mv", "restore", "init"]
)
_GIT_UNSAFE = (
    "--output",
    "--ext-diff",
    "--textconv",
    "--exec",
    "--upload-pack",
    "--receive-pack",
    "--filters",
)
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FIND_WRITES = frozenset({"-fprint", "-fprint0", "-fprintf", "-fls"})
_SED_SCRIPT = re.compile(r"[0-9,$]*p|s/(?:[^/\\\n]|\\[^\n])*/(?:[^/\\\n]|\\[^\n])*/[gpiI0-9]*")
_SAFE_VARIABLES = frozenset({"LC_ALL", "LANG", "TZ", "NO_COLOR", "TERM", "COLUMNS"})
_MOST_WRAPPERS = 5


def classify(
    words: Sequence[Word], run: Callable[[str], ShellRisk], depth: int = 0
) -> tuple[ShellRisk, list[str]]:
    """Return the risk of one simple command and the programs it names, wrappers included.

    Args:
        words: The program and its arguments.
        run: What judges a whole script, for `sh -c`.
        depth: How many wrappers were unwrapped already.
    """
    name = _program(words[0]) if words else None
    if name is None or depth > _MOST_WRAPPERS:
        return "unknown", []
    arguments = words[1:]
    if name in _WRAPPERS and not (name == "command" and arguments[:1] in (["-v"], ("-v",))):
        return _wrapped(name, arguments, run, depth)
    if name in ("sh", "bash", "dash", "zsh"):
        script = arguments[1] if len(arguments) == 2 and arguments[0] == "-c" else None  # noqa: PLR2004 - `-c` and the script
        return (run(script) if script is not None else "unknown"), [name]
    if name == "find":
        return _find(arguments, run, depth)
    return _plain(name, arguments), [name]


def variable_is_safe(name: str) -> bool:
    """Return whether setting this variable cannot change which program runs or how."""
    return name in _SAFE_VARIABLES or (name.islower() and name.isidentifier())


def _program(word: Word) -> str | None:
    """Return the name of a program, without the folders where the system keeps its own."""
    if word is None:
        return None
    found = re.fullmatch(r"(?:/usr)?(?:/bin/|/sbin/)?([A-Za-z0-9_.:+-]+)", word)
    return found.group(1) if found else None


def _plain(name: str, arguments: Sequence[Word]) -> ShellRisk:
    if name in _DESTRUCTIVE or name.startswith("mkfs."):
        return "destructive"
    if name in _NETWORK:
        return "network"
    if name in _WRITE:
        touches_device = any(word is None or word.startswith("/dev/") for word in arguments)
        return "destructive" if touches_device and name in ("cp", "mv", "tee") else "write"
    if name in _READ or (name == "command" and arguments[:1]):
        return "read"
    literal = [word for word in arguments if word is not None]
    if len(literal) < len(arguments):
        return "unknown"
    return _guarded(name, literal)


def _guarded(name: str, arguments: Sequence[str]) -> ShellRisk:
    """Judge programs that only read when none of their arguments says otherwise."""
    match name:
        case "git":
            return _git(arguments)
        case "sed":
            return _sed(arguments)
        case "uniq":
            operands = [word for word in arguments if not word.startswith("-")]
            return "read" if len(operands) <= 1 else "write"
        case _ if name in _GUARDED:
            letters, longs = _GUARDED[name]
            unsafe = any(_has_letter(word, letters) or _is_long(word, longs) for word in arguments)
            return "unknown" if unsafe else "read"
        case _:
            return "unknown"


def _has_letter(word: str, letters: str) -> bool:
    return word.startswith("-") and not word.startswith("--") and any(letter in word for letter in letters)


def _is_long(word: str, longs: Sequence[str]) -> bool:
    """Return whether the word is one of the long options, or an abbreviation of one."""
    stem = word.partition("=")[0]
    return (
        stem.startswith("--")
        and stem != "--"
        and any(long.startswith(stem) or stem.startswith(long) for long in longs)
    )


def _git(arguments: Sequence[str]) -> ShellRisk:
    verb = arguments[0] if arguments else ""
    if any(_is_long(word, _GIT_UNSAFE) for word in arguments):
        return "unknown"
    kinds: tuple[tuple[ShellRisk, frozenset[str]], ...] = (
        ("read", _GIT_READ),
        ("write", _GIT_WRITE),
        ("network", _GIT_NETWORK),
        ("destructive", _GIT_DESTRUCTIVE),
    )
    found: list[ShellRisk] = [kind for kind, verbs in kinds if verb in verbs]
    risk = found[0] if found else "unknown"
    forced = any(word in ("-f", "-D", "--delete") or word.startswith("--force") for word in arguments)
    return "destructive" if forced and risk in ("write", "network") else risk


def _sed(arguments: Sequence[str]) -> ShellRisk:
    if any(word.startswith("-i") or _is_long(word, ("--in-place",)) for word in arguments):
        return "write"
    operands = [word for word in arguments if not word.startswith("-")]
    options = [word for word in arguments if word.startswith("-")]
    simple = bool(operands) and _SED_SCRIPT.fullmatch(operands[0]) is not None
    return "read" if simple and all(word in ("-n", "-E", "-r") for word in options) else "unknown"


def _find(
    arguments: Sequence[Word], run: Callable[[str], ShellRisk], depth: int
) -> tuple[ShellRisk, list[str]]:
    names = ["find"]
    risks: list[ShellRisk] = ["read"]
    if any(word is None for word in arguments):
        return "unknown", names
    for place, word in enumerate(arguments):
        if word == "-delete":
            risks.append("destructive")
        elif word in _FIND_WRITES:
            risks.append("write")
        elif word in _FIND_RUNS:
            rest = list(arguments[place + 1 :])
            end = next((at for at, each in enumerate(rest) if each in (";", "+")), len(rest))
            inner = [None if each and "{}" in each else each for each in rest[:end]]
            risk, found = classify(inner, run, depth + 1)
            risks.append(risk)
            names += found
    return max(risks, key=RANK.__getitem__), names


def _wrapped(
    name: str, arguments: Sequence[Word], run: Callable[[str], ShellRisk], depth: int
) -> tuple[ShellRisk, list[str]]:
    flags, valued, before = _WRAPPERS[name]
    rest = list(arguments)
    while rest and rest[0] is not None and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in valued and rest:
            rest.pop(0)
        elif option not in flags:
            return "unknown", [name]
    rest = rest[before:]
    if name in ("env", "sudo"):
        while rest and (assigned := re.match(r"([A-Za-z_][A-Za-z0-9_]*)=", rest[0] or "")):
            if not variable_is_safe(assigned.group(1)):
                return "unknown", [name]
            rest.pop(0)
    if not rest:
        return ("read" if name in ("env", "time") else "unknown"), [name]
    if name == "xargs":
        rest.append(None)
    risk, names = classify(rest, run, depth + 1)
    least: ShellRisk = "write" if name in ("sudo", "doas") else "read"
    return max((risk, least), key=RANK.__getitem__), [name, *names]
