"""How far the tests of the library go: branch coverage and mutation score."""
