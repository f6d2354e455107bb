"""Vega-Lite charts of a report, without their data, which the page puts in."""

import altair as alt

WIDTH = "container"


def charts():
    """{name: Vega-Lite specification}; each reads the page's data of a name."""
    return {
        "loss": _over_time("hours", ["lost", "violations"], "number"),
        "latency": _over_time("hours", ["p50", "p95", "max"], "milliseconds"),
        "traffic": _over_time("hours", ["readings", "packets"], "number"),
        "hot": _heat(),
    }


def _over_time(data, columns, title):
    zoom = alt.selection_interval(bind="scales", encodings=["x"])
    chart = (
        alt.Chart(alt.NamedData(name=data))
        .transform_fold(columns, as_=["what", "value"])
        .transform_filter("isValid(datum.value)")
        .mark_line(point=True, interpolate="step-after")
        .encode(
            x=alt.X("hour:T", title=None),
            y=alt.Y("value:Q", title=title),
            color=alt.Color("what:N", title=None, sort=columns),
            tooltip=["hour:T", "what:N", "value:Q"],
        )
        .add_params(zoom)
        .properties(width=WIDTH, height=200)
    )
    return chart.to_dict(validate=False)


def _heat():
    chart = (
        alt.Chart(alt.NamedData(name="hot"))
        .mark_rect()
        .encode(
            x=alt.X("yearmonthdatehours(hour):T", title=None),
            y=alt.Y("client:N", title=None, sort="-color", axis=alt.Axis(labelLimit=160)),
            color=alt.Color("findings:Q", title="findings", scale=alt.Scale(scheme="orangered")),
            tooltip=["client:N", "hour:T", "findings:Q"],
        )
        .properties(width=WIDTH)
    )
    return chart.to_dict(validate=False)
