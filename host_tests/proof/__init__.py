"""How far the tests of the library go: the mutation score."""
