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
    found = "# HELP mqtt_fleet_findings What the last audit found."
    lines = [found, "# TYPE mqtt_fleet_findings gauge"]
    lines += ['mqtt_fleet_findings{what="%s"} %d' % one for one in result.findings.items()]
    lines += ["# HELP mqtt_fleet_rows Rows of the tables.", "# TYPE mqtt_fleet_rows gauge"]
    lines += ['mqtt_fleet_rows{table="%s"} %d' % one for one in result.rows.items()]
    return "\n".join(lines) + "\n"
