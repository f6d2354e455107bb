"""The fleet pipeline: recorded MQTT traffic in, tables and a report out.

`capture` turns files into frames and TCP segments, `decode` turns segments into
MQTT packets, `audit` judges packets; none of these knows Spark.  `spark` runs
them over folders, clusters and live brokers, `report` shows what they found,
`simulate` makes fleets with known faults to try all of it on.
"""
