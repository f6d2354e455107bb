"""A file system that is on no disk: WebHDFS, as Hadoop's own client speaks it.

Files are in memory and reached over HTTP only, so no local path can work by accident.
As on HDFS a rename needs the folder it goes to, and never takes the place of a file
unless it is told to.
"""

import contextlib
import json
import threading
import time
import urllib.parse
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Store:
    """`files`: {path: (bytes, time of the last change in ms)}; `folders`; `asked`: operations."""

    def __init__(self):
        self.files, self.folders = {}, {"/"}
        self.asked = Counter()
        self.read_bytes = Counter()
        self.lock = threading.RLock()
        self.address = None

    def put(self, path, data, age_s=3600):
        """Put a file there, last changed `age_s` ago."""
        self.make(path.rpartition("/")[0])
        self.files[path] = (bytes(data), int((time.time() - age_s) * 1000))

    def make(self, path):
        """Make a folder and those around it."""
        parts = [one for one in path.split("/") if one]
        self.folders |= {"/" + "/".join(parts[:count]) for count in range(len(parts) + 1)}

    def has(self, path):
        """Is there a file or folder?"""
        return path in self.files or path in self.folders

    def below(self, path):
        """All files and folders in a folder and below."""
        begin = path.rstrip("/") + "/"
        return [
            one for one in (*self.files, *self.folders) if one.startswith(begin) and one != "/"
        ]

    def delete(self, path):
        """Delete a file or a whole folder -> was it there?"""
        found = self.has(path)
        for one in [*self.below(path), path]:
            self.files.pop(one, None)
            self.folders.discard(one)
        self.folders.add("/")
        return found

    def rename(self, path, target, overwrite=False):
        """-> was it renamed?"""
        if target in self.folders:
            target = target.rstrip("/") + "/" + path.rpartition("/")[2]
        if target in self.files and overwrite:
            del self.files[target]
        if not self.has(path) or self.has(target):
            return False
        if target.rpartition("/")[0] not in self.folders | {""}:
            return False
        for one in [*self.below(path), path]:
            new = target + one[len(path) :]
            if one in self.files:
                self.files[new] = self.files.pop(one)
            else:
                self.folders.discard(one)
                self.folders.add(new)
        return True

    def status(self, path, name=""):
        """The `FileStatus` of WebHDFS."""
        data, changed = self.files.get(path, (b"", 0))
        return {
            "pathSuffix": name,
            "type": "FILE" if path in self.files else "DIRECTORY",
            "length": len(data),
            "modificationTime": changed,
            "accessTime": changed,
            "blockSize": 1 << 27,
            "replication": 1,
            "owner": "fleet",
            "group": "fleet",
            "permission": "755",
        }


@contextlib.contextmanager
def webhdfs():
    """Yields a `Store` behind a server on a free port; `address` is its root."""
    store = Store()

    class Handler(_Handler):
        pass

    Handler.store = store
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    store.address = "webhdfs://127.0.0.1:%d" % server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer is written in two pieces; the second would wait 40 ms for the first one's ACK.
    disable_nagle_algorithm = True
    store: Store

    def log_message(self, *_):
        pass

    def do_GET(self):
        self._answer("GET")

    def do_PUT(self):
        self._answer("PUT")

    def do_DELETE(self):
        self._answer("DELETE")

    def _answer(self, method):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        path = urllib.parse.unquote(url.path).removeprefix("/webhdfs/v1").rstrip("/") or "/"
        name = query["op"]
        body = self._body()
        # A name node sends reading and writing on to a data node.
        if name in ("OPEN", "CREATE") and "datanode" not in query:
            self._send(307, b"", Location="http://%s:%d%s&datanode=1" % (*self._own(), self.path))
            return
        with self.store.lock:
            self.store.asked[name] += 1
            function = getattr(self, "_%s_%s" % (method.lower(), name.lower()), None)
            if function is None:
                self._refuse(400, "UnsupportedOperationException", "no %s %s" % (method, name))
            else:
                function(path, query, body)

    def _own(self):
        return self.server.server_address

    def _body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _send(self, status, data, **headers):
        # No Content-Type: for its check Hadoop's client needs a library that Spark's jars lack.
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _json(self, value):
        self._send(200, json.dumps(value).encode())

    def _refuse(self, status, kind, text):
        told = {"exception": kind, "javaClassName": "java.io." + kind, "message": text}
        self._send(status, json.dumps({"RemoteException": told}).encode())

    def _is_missing(self, path):
        if not self.store.has(path):
            self._refuse(404, "FileNotFoundException", "File does not exist: " + path)
            return True
        return False

    def _get_getfilestatus(self, path, query, body):
        if not self._is_missing(path):
            self._json({"FileStatus": self.store.status(path)})

    _get_getfilelinkstatus = _get_getfilestatus

    def _get_liststatus(self, path, query, body):
        if self._is_missing(path):
            return
        if path in self.store.files:
            found = [self.store.status(path)]
        else:
            begin = path.rstrip("/") + "/"
            own = [one for one in self.store.below(path) if "/" not in one[len(begin) :]]
            found = [self.store.status(one, one[len(begin) :]) for one in sorted(own)]
        self._json({"FileStatuses": {"FileStatus": found}})

    def _get_liststatus_batch(self, path, query, body):
        if self._is_missing(path):
            return
        begin = path.rstrip("/") + "/"
        own = [one for one in self.store.below(path) if "/" not in one[len(begin) :]]
        found = [self.store.status(one, one[len(begin) :]) for one in sorted(own)]
        listing = {"partialListing": {"FileStatuses": {"FileStatus": found}}}
        self._json({"DirectoryListing": {**listing, "remainingEntries": 0}})

    def _get_getfileblocklocations(self, path, query, body):
        self._json({"BlockLocations": {"BlockLocation": []}})

    def _get_getserverdefaults(self, path, query, body):
        sizes = {"blockSize": 1 << 27, "bytesPerChecksum": 512, "writePacketSize": 1 << 16}
        more = {"replication": 1, "fileBufferSize": 4096, "encryptDataTransfer": False}
        last = {"trashInterval": 0, "checksumType": 2, "keyProviderUri": "", "policyId": 0}
        self._json({"FsServerDefaults": {**sizes, **more, **last}})

    _get_get_block_locations = _get_getfileblocklocations

    def _get_open(self, path, query, body):
        if self._is_missing(path):
            return
        data = self.store.files[path][0]
        begin = int(query.get("offset", 0))
        data = data[begin : begin + int(query.get("length", len(data)))]
        self.store.read_bytes[path] += len(data)
        self._send(200, data)

    def _put_create(self, path, query, body):
        if path in self.store.files and query.get("overwrite") != "true":
            self._refuse(403, "FileAlreadyExistsException", path)
            return
        self.store.put(path, body, 0)
        self._send(201, b"")

    def _put_mkdirs(self, path, query, body):
        self.store.make(path)
        self._json({"boolean": True})

    def _put_rename(self, path, query, body):
        options = query.get("renameoptions")
        done = self.store.rename(path, query["destination"], options == "OVERWRITE")
        if options is None:
            self._json({"boolean": done})
        elif done:
            self._send(200, b"")
        else:
            self._refuse(403, "FileAlreadyExistsException", query["destination"])

    def _put_setpermission(self, path, query, body):
        self._send(200, b"")

    _put_settimes = _put_setowner = _put_setpermission

    def _delete_delete(self, path, query, body):
        self._json({"boolean": self.store.delete(path)})
