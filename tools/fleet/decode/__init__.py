"""TCP segments -> MQTT packets, with state that lives from one batch to the next."""
