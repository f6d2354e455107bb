"""What an audit found, as a text file for Prometheus' node exporter (its textfile collector).

`tables.publish` shows it by a rename, so that a collector never reads half of it.
"""

NAME = "metrics.prom"


def write(result, out):
    """Write `metrics.prom` under `out` for an `outcome.Result`."""
    with (out / NAME).open("wb") as stream:
        stream.write(text(result).encode())


def text(result):
    """The lines of the file."""
    lines = [
        "# HELP mqtt_fleet_findings What the last audit found.",
        "# TYPE mqtt_fleet_findings gauge",
    ]
    for name, number in result.findings.items():
        lines.append('mqtt_fleet_findings{what="%s"} %d' % (name, number))
    lines += ["# HELP mqtt_fleet_rows Rows of the tables.", "# TYPE mqtt_fleet_rows gauge"]
    for name, number in result.rows.items():
        lines.append('mqtt_fleet_rows{table="%s"} %d' % (name, number))
    return "\n".join(lines) + "\n"
