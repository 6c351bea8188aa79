"""What a person types: `sayso`. Reads settings, talks to the inbox and prints; decides nothing."""
