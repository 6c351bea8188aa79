"""The demo: Sarah's request, an agent that overreaches, and a person in between.

Real tools over a small flight table, a real store, a real policy file; only the model is
scripted unless one is named. It must never book anything that nobody allowed.
"""

from sayso.demo.main import Desk, Options, main

__all__ = ["Desk", "Options", "main"]
