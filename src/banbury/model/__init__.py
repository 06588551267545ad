"""Models derived from a tally: naive Bayes, belief networks, densities; and how they explain themselves."""
