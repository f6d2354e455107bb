"""Shows the promises on this computer: a sensor node, a broker, and what goes wrong between."""
