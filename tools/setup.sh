#!/bin/sh
# Make `.venv` ready: Sayso itself and, when named, dependency groups of pyproject.toml.
#
#     tools/setup.sh [GROUP...]
#
# Needs Python 3.11 or later with its venv and pip, and nothing else. Versions are those of
# constraints.txt. A `.venv` that works is kept.
set -eu
cd "$(dirname "$0")/.."

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for name in ${PYTHON:-} python3.11 python3.12 python3.13 python3 python; do
        if command -v "$name" >/dev/null && is_new_enough "$name"; then
            echo "$name"
            return
        fi
    done
    echo "no Python 3.11 or later was found; install one, or name it: make PYTHON=/path/to/python" >&2
    exit 1
}

can_install_groups() {
    "$1" pip install --help 2>/dev/null | grep -q -- --group
}

find_uv() {
    for name in uv .venv/bin/uv; do
        if command -v "$name" >/dev/null && can_install_groups "$name"; then
            echo "$name"
            return
        fi
    done
}

if ! { [ -x .venv/bin/python ] && is_new_enough .venv/bin/python; }; then
    python=$(find_python)
    echo "making .venv with $("$python" --version)"
    if ! "$python" -m venv --clear .venv; then
        echo "$python cannot make a virtual environment; install its venv and pip (Debian: python3-venv)" >&2
        exit 1
    fi
fi

uv=$(find_uv)
if [ -z "$uv" ]; then
    .venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >/dev/null
    .venv/bin/python -m pip install --quiet --constraint constraints.txt uv
    uv=.venv/bin/uv
fi

groups=
for group in "$@"; do
    groups="$groups --group $group"
done
# shellcheck disable=SC2086 # each word of $groups is an argument
"$uv" pip install --quiet --python .venv/bin/python --constraint constraints.txt --editable . $groups
