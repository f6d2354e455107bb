"""The fleet pipeline: recorded MQTT traffic in, tables and a report out.

`capture` turns files into frames and TCP segments, `decode` turns segments into
MQTT packets, `audit` judges packets; none of these knows Spark.  `spark` runs
them over folders, on one computer or a cluster, `report` shows what they found.
"""
