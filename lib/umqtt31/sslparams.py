"""umqtt.simple's `ssl=True, ssl_params={…}` as a context that checks the broker.

Loaded only when a program gives them.  Unchecked only if it says `cert_reqs` none.
"""

_NAMES = {"cadata": "ca", "cert": "cert", "key": "key"}
_OTHERS = "server_hostname", "do_handshake", "server_side"


class _Named:
    # A context for a server that calls itself otherwise than its address.
    def __init__(self, context, name):
        self._context = context
        self.server = name  # `errors` says whose certificate is wrong

    def wrap_socket(self, sock, server_hostname=None, **options):
        return self._context.wrap_socket(sock, server_hostname=self.server, **options)


def context_of(params):
    """-> what `ssl` may be, for the `params` of ssl.wrap_socket(): key, cert, cadata,
    cert_reqs, server_hostname, of no effect do_handshake and server_side=False.  Raises
    ValueError."""
    given = {}
    is_checked = True
    for name in params:
        value = params[name]
        if name in _NAMES:
            if value is not None:
                given[_NAMES[name]] = value
        elif name == "cert_reqs":
            is_checked = value != 0  # CERT_NONE, by all ports
        elif name == "server_side" and value or name not in _OTHERS:
            raise ValueError("ssl_params: %r is not known" % name)
    try:
        from .tls import context_of  # which does not stay

        context = context_of(given, is_checked)
    except ValueError as error:
        text = str(error)[5:].replace("ca:", "cadata:")
        if "no roots" in text:
            text = "give cadata, or cert_reqs=ssl.CERT_NONE, which checks nothing"
        raise ValueError("ssl_params: " + text)
    name = params.get("server_hostname")
    return _Named(context, name) if name else context
