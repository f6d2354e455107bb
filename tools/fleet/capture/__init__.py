"""Reading captures: file formats, link types, TCP segments.  No MQTT in here."""
