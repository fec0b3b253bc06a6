"""How well a model does where the truth is known: repeated samples of a population, and what came of them."""
