"""How fast Sayso is, next to the floor and to its peers, measured in one run on one machine."""
