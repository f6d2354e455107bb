"""Java for a Python process that reads or writes through Hadoop's file systems.

The driver has Spark's.  A task's Python has none it could talk to, so the first such path
starts one of its own beside it, with the jars of the machine and the driver's Hadoop
configuration; it ends with the process.  Nothing here happens for local paths.
"""

import base64
import glob
import os
import threading
import zlib
from pathlib import Path

_JAVA_OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
_lock = threading.Lock()
_settings = ""
_own = None
_is_wanted = False


class Java:
    """`jvm`, the names in it, and `configuration`, that of Hadoop; `gateway` leads there."""

    def __init__(self, gateway, configuration):
        self.gateway = gateway
        self.jvm = gateway.jvm
        self.configuration = configuration


def java():
    """The Java of this process; it is started when there is none."""
    context = _context()
    if context:
        return Java(context._gateway, context._jsc.hadoopConfiguration())
    global _own
    with _lock:
        _own = _own or _start()
    return _own


def want():
    """There is a path for which Java is needed."""
    global _is_wanted
    _is_wanted = True


def settings():
    """A text for tasks, so that they use the same file systems; `adopt` takes it there.

    Empty while there is no path for which Java is needed.
    """
    context = _context() if _is_wanted else None
    if not context:
        return _settings
    writer = context._jvm.java.io.StringWriter()
    context._jsc.hadoopConfiguration().writeXml(writer)
    return base64.b85encode(zlib.compress(writer.toString().encode())).decode()


def adopt(found):
    """In a task: the `settings` of the driver."""
    global _settings
    _settings = found


def _context():
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def _start():
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    jars = _jars()
    port, token = launch_gateway(
        jarpath=glob.glob(str(jars / "py4j-*.jar"))[0],
        classpath=os.pathsep.join(_classpath(jars)),
        javaopts=_JAVA_OPTIONS,
        java_path=None,  # that of JAVA_HOME, or else of PATH
        die_on_exit=True,
        enable_auth=True,
    )
    parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    gateway = JavaGateway(gateway_parameters=parameters)
    configuration = gateway.jvm.org.apache.hadoop.conf.Configuration()
    if _settings:
        text = zlib.decompress(base64.b85decode(_settings))
        configuration.addResource(gateway.jvm.java.io.ByteArrayInputStream(text))
    return Java(gateway, configuration)


def _jars():
    home = os.environ.get("SPARK_HOME")
    if not home or not (Path(home) / "jars").is_dir():
        import pyspark

        home = str(Path(pyspark.__file__).parent)
    return Path(home) / "jars"


def _classpath(jars):
    # Spark's, those of --jars and --packages, and the machine's Hadoop settings.
    from pyspark import SparkFiles

    found = [str(jars / "*")]
    if SparkFiles._root_directory:
        found.append(os.path.join(SparkFiles._root_directory, "*"))
    named = ("HADOOP_CONF_DIR", "SPARK_DIST_CLASSPATH")
    return found + [os.environ[name] for name in named if name in os.environ]
