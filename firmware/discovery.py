"""Tells Home Assistant what the node measures: a retained description for each value.

https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery; keys in its short form.
"""

import json

# kind: (class of device, unit) of Home Assistant.
_CLASSES = {
    1: ("temperature", "°C"),
    2: ("humidity", "%"),
    3: ("pressure", "hPa"),
    4: ("voltage", "V"),
    5: ("signal_strength", "dBm"),
    6: ("data_size", "B"),
}


class Discovery:
    """`prefix` is Home Assistant's own, `device` the client id, `topic` that of the readings,
    `status` that of online and offline, or None where a silent node may be asleep."""

    def __init__(self, prefix, device, topic, status):
        self._prefix = prefix
        self._device = device
        # Home Assistant takes letters, digits, _ and - for an id.
        self._id = "".join(c if c.isalpha() or c.isdigit() or c in "_-" else "_" for c in device)
        self._topic = topic.decode()
        self._status = status and status.decode()
        self._told = []

    def tell(self, reading, publish):
        """publish() as a client does, retained, what is not told yet of a JSONReading's values.

        Raises what publish() raises: the next call tells what is left."""
        for kind, name, _ in reading.named():
            if name not in self._told:
                topic = "%s/sensor/%s/%s/config" % (self._prefix, self._id, name)
                publish(topic.encode(), self._description(kind, name).encode(), True, 1)
                self._told.append(name)

    def _description(self, kind, name):
        about = {
            "name": name.replace("_", " "),
            "uniq_id": "%s_%s" % (self._id, name),
            "stat_t": self._topic,
            "val_tpl": "{{ value_json.%s }}" % name,
            "stat_cla": "measurement",
            "dev": {"ids": [self._id], "name": self._device},
        }
        if kind in _CLASSES:
            about["dev_cla"], about["unit_of_meas"] = _CLASSES[kind]
        if self._status:
            about["avty_t"] = self._status
        return json.dumps(about)
