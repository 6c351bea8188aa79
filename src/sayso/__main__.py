"""`python -m sayso` is the same as `sayso`."""

from sayso.cli.main import run

if __name__ == "__main__":
    run()
