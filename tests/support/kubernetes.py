# SPDX-License-Identifier: BSD-3-Clause
"""A server that keeps to the rules which Kubernetes documents for its API, for ConfigMaps and Leases.

It is no API server: it does what "Kubernetes API Concepts" and the API reference promise of versions of objects, and of the
Status in which a request is refused. Faults can be put into it, which a real one cannot be asked for.
"""

import contextlib
import copy
import http.server
import json
import pathlib
import random
import re
import socket
import ssl
import struct
import threading
import time
import urllib.parse
import uuid

from support.ports import free_port

KINDS = {"configmaps": ("v1", "ConfigMap"), "leases": ("coordination.k8s.io/v1", "Lease")}
GROUPS = {"configmaps": "", "leases": "coordination.k8s.io"}
PATH = re.compile(r"/(?:api/v1|apis/(coordination\.k8s\.io)/v1)/namespaces/([^/]+)/(configmaps|leases)(?:/([^/]+))?$")
VERBS = {"GET": "get", "PUT": "update", "POST": "create"}
DATA_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}$")
ANNOTATION = re.compile(r"(?:[a-z0-9][-a-z0-9.]{0,252}/)?[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$")
DATA_MAXIMUM, ANNOTATIONS_MAXIMUM = 1 << 20, 256 << 10
ACCOUNT = "system:serviceaccount:default:muster"


ROLE = pathlib.Path(__file__).parents[2] / "examples/kubernetes/role.yaml"
RULE = re.compile(r"  - apiGroups: \[(.*)\]\n    resources: \[(.*)\]\n(?:    resourceNames: \[(.*)\]\n)?    verbs: \[(.*)\]\n")


def role_that_is_shipped():
    """The rules of examples/kubernetes/role.yaml: (group, resource, name or None, verb)"""
    return {(group.strip('"'), resource, name, verb) for group, resource, name, verbs in RULE.findall(ROLE.read_text(encoding="utf-8"))
            for verb in verbs.split(", ")}  # fmt: skip


class Refusal(Exception):
    def __init__(self, code, reason, message, **details):
        super().__init__(message)
        self.code = code
        self.status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
                       "reason": reason, "details": details, "code": code}  # fmt: skip


def check_values(resource, name, sent):
    """What the API server validates of the values that are used here."""

    def invalid(where, why):
        raise Refusal(422, "Invalid", f'{KINDS[resource][1]} "{name}" is invalid: {where}: {why}')

    for key in sent.get("data") or {}:
        if not DATA_KEY.match(key) or key == "." or key.startswith(".."):
            invalid(f"data[{key}]", "Invalid value: a valid config key must consist of alphanumeric characters, '-', '_' or '.'")
    if sum(len(key) + len(value.encode()) for key, value in (sent.get("data") or {}).items()) > DATA_MAXIMUM:
        invalid("[]", f"Too long: must have at most {DATA_MAXIMUM} bytes")
    annotations = sent["metadata"].get("annotations") or {}
    for key in annotations:
        if not ANNOTATION.match(key):
            invalid("metadata.annotations", f'Invalid value: "{key}": name part must consist of alphanumeric characters')
    if sum(len(key) + len(value) for key, value in annotations.items()) > ANNOTATIONS_MAXIMUM:
        invalid("metadata.annotations", f"Too long: must have at most {ANNOTATIONS_MAXIMUM} bytes")


class Objects:
    """The objects and their versions. Who asks is somebody else's business."""

    def __init__(self):
        self.revision = 1000
        self.objects = {}
        self.spaces = {"default", "ml"}
        self.changes = []  # (revision, type, resource, space, name, object), those that are kept for watches
        self.oldest = 0  # a watch may begin there at the earliest

    def missing(self, resource, name):
        group = GROUPS[resource]
        return Refusal(404, "NotFound", f'{resource}{"." if group else ""}{group} "{name}" not found', name=name, kind=resource)

    def get(self, resource, space, name):
        try:
            return self.objects[resource, space, name]
        except KeyError:
            raise self.missing(resource, name) from None

    def create(self, resource, space, sent):
        name = sent["metadata"]["name"]
        if space not in self.spaces:
            raise Refusal(404, "NotFound", f'namespaces "{space}" not found', name=space, kind="namespaces")
        if sent["metadata"].get("resourceVersion"):
            raise Refusal(500, "InternalError", "resourceVersion should not be set on objects to be created")
        if (resource, space, name) in self.objects:
            raise Refusal(409, "AlreadyExists", f'{resource} "{name}" already exists', name=name, kind=resource)
        check_values(resource, name, sent)
        sent["metadata"].update({"namespace": space, "uid": str(uuid.uuid4()), "creationTimestamp": "2026-11-23T05:00:00Z"})
        return self.keep(resource, space, name, sent)

    def update(self, resource, space, name, sent):
        old = self.get(resource, space, name)
        metadata, kept = sent["metadata"], old["metadata"]
        version = metadata.get("resourceVersion")
        if metadata.get("name") != name:
            raise Refusal(400, "BadRequest", "the name of the object does not match the name on the URL")
        if resource == "leases" and not version:
            raise Refusal(422, "Invalid", "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update")
        if version and version != kept["resourceVersion"]:
            raise Refusal(409, "Conflict", f'Operation cannot be fulfilled on {resource} "{name}": the object has been modified; '
                          "please apply your changes to the latest version and try again", name=name, kind=resource)  # fmt: skip
        if metadata.get("uid", kept["uid"]) != kept["uid"]:
            raise Refusal(409, "Conflict", "Precondition failed: UID in precondition", name=name, kind=resource)
        check_values(resource, name, sent)
        metadata.update({key: kept[key] for key in ("namespace", "uid", "creationTimestamp")})
        if {**sent, "metadata": {**metadata, "resourceVersion": "", "managedFields": []}} == {
            **old, "metadata": {**kept, "resourceVersion": "", "managedFields": []}}:  # fmt: skip
            return old  # an update that changes nothing makes no version
        return self.keep(resource, space, name, sent)

    def keep(self, resource, space, name, sent):
        self.revision += random.randrange(1, 5)  # others use the server as well
        version, kind = KINDS[resource]
        sent["metadata"]["resourceVersion"] = str(self.revision)
        sent["metadata"]["managedFields"] = [{"manager": "muster", "operation": "Update", "fieldsType": "FieldsV1",
                                              "fieldsV1": {"f:data": {".": {}}}}]  # fmt: skip
        change = "MODIFIED" if (resource, space, name) in self.objects else "ADDED"
        self.objects[resource, space, name] = {**sent, "kind": kind, "apiVersion": version}
        self.note(change, resource, space, name)
        return self.objects[resource, space, name]

    def note(self, change, resource, space, name):
        found = copy.deepcopy(self.objects[resource, space, name])
        self.changes.append((self.revision, change, resource, space, name, found))

    def remove(self, resource, space, name):
        self.revision += 1
        self.note("DELETED", resource, space, name)
        del self.objects[resource, space, name]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *words):
        pass

    def setup(self):
        super().setup()
        self.server.kubernetes.connections.add(self.connection)

    def finish(self):
        self.server.kubernetes.connections.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def handle(self):
        try:
            super().handle()
        except ssl.SSLError as failure:
            if failure.reason == "HTTP_REQUEST":  # as a server written in Go answers
                answer = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
                socket.socket.send(self.connection, answer)
                # It has not read the rest of the request, so the kernel resets the connection.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
        except OSError:
            pass  # the client is gone

    def tell(self, event):
        line = json.dumps(event).encode() + b"\n"
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.flush()

    def watch(self, path, wishes):
        refusal = self.server.kubernetes.refuse_watch(path, wishes, self.headers)
        if refusal is not None:
            self.send_answer(refusal.code, json.dumps(refusal.status).encode(), {})
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in self.server.kubernetes.events_of(path, wishes):
            self.tell(event)
        self.wfile.write(b"0\r\n\r\n")

    def answer(self):
        path, _, query = self.path.partition("?")
        if query:
            self.watch(path, dict(urllib.parse.parse_qsl(query)))
            return
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:
            self.close_connection = True
            return
        code, reply, headers = self.server.kubernetes.serve(self.command, self.path, self.headers, body)
        if code is None:  # the reply is lost
            self.close_connection = True
            return
        self.send_answer(code, reply, headers)

    def send_answer(self, code, reply, headers):
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(reply)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a client that does not speak TLS, or is gone


class Kubernetes:
    """One server on a free port of this machine. `trust`: a folder of support.etcd.make_certificates, for TLS."""

    def __init__(self, place, trust=None, seed=1):
        self.place, self.trust = pathlib.Path(place), trust
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.watches = 0  # that have begun
        self.random = random.Random(seed)
        self.objects = Objects()
        self.tokens = {"the-first-token"}
        self.role = role_that_is_shipped()
        self.forbidden = set()  # (verb, resource), whatever the role says
        self.lost_in_ten = 0  # replies that are lost after a change was made
        self.refusals = []  # (code, {header: value}) of the next requests
        self.sends_bookmarks = False
        self.is_silent = False
        self.spoken = threading.Event()  # set while it is not silent
        self.spoken.set()
        self.page = None  # what is served to everybody, if this is no Kubernetes
        self.requests = []  # (method, path, code or None)
        self.seen_tokens = []
        self.before_request = lambda count: None
        self.asked, self.heard = threading.Event(), threading.Event()  # before and after a request is served
        self.connections = set()
        self.token_file = self.place / "token"
        self.write_token("the-first-token")
        self.listener, self.port = None, free_port()
        self.start()

    @property
    def url(self):
        return f"{'https' if self.trust else 'http'}://127.0.0.1:{self.port}"

    @property
    def conf(self):
        return [f"k8s_server={self.url}", f"k8s_token_file={self.token_file}",
                *([f"k8s_ca={self.trust}/ca.pem"] if self.trust else [])]  # fmt: skip

    def write_token(self, token):
        """As the kubelet does: another file in its place."""
        new = self.place / "token.new"
        new.write_text(token + "\n", encoding="utf-8")
        new.rename(self.token_file)

    # Whether it is there.

    def start(self):
        """On the same port as before."""
        self.listener = Listener(("127.0.0.1", self.port), Handler)
        self.listener.kubernetes = self
        if self.trust:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(f"{self.trust}/server.pem", f"{self.trust}/server.key")
            self.listener.socket = context.wrap_socket(self.listener.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.listener.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        """Connections end as well."""
        self.listener.shutdown()
        self.listener.server_close()
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def fall_silent(self):
        """Requests are taken; nothing is done, and nothing answered, until it speaks again: then they are lost."""
        self.spoken.clear()
        self.is_silent = True

    def speak(self):
        self.is_silent = False
        self.spoken.set()

    def end(self):
        self.speak()
        self.stop()

    # Requests.

    def serve(self, method, path, headers, body):
        """(code or None, body, headers)"""
        self.asked.set()
        if self.is_silent:
            self.spoken.wait()
            return None, b"", {}
        if self.page is not None:
            return 200, self.page, {}
        with self.lock:
            self.before_request(len(self.requests) + 1)
            self.seen_tokens.append((headers.get("authorization") or "").removeprefix("Bearer "))
            code, reply, more = self.decide(method, path, headers, body)
            is_change = method != "GET" and code in (200, 201)
            if is_change and self.random.randrange(10) < self.lost_in_ten:
                code = None
            self.requests.append((method, path, code))
            self.changed.notify_all()
        self.heard.set()
        return code, reply, more

    def decide(self, method, path, headers, body):
        try:
            if self.refusals:
                code, more = self.refusals.pop(0)
                message = "the server is currently unable to handle the request"
                refusal = Refusal(code, "ServiceUnavailable", message)
                return code, json.dumps(refusal.status).encode(), more
            code, found = self.perform(method, path, headers, body)
            return code, json.dumps(found).encode(), {}
        except Refusal as refusal:
            return refusal.code, json.dumps(refusal.status).encode(), {}

    def perform(self, method, path, headers, body):
        if headers.get("authorization") not in {f"Bearer {token}" for token in self.tokens}:
            raise Refusal(401, "Unauthorized", "Unauthorized")
        match = PATH.match(path)
        if match is None or bool(match[1]) != (match[3] == "leases"):
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        _, space, resource, name = match.groups()
        self.authorize(VERBS[method], resource, space, name)
        if method == "GET":
            return 200, copy.deepcopy(self.objects.get(resource, space, name))
        sent = json.loads(body)
        if (sent.get("apiVersion"), sent.get("kind")) != KINDS[resource]:
            raise Refusal(400, "BadRequest", "the object provided is unrecognized (must be of type " + KINDS[resource][1] + ")")
        if method == "POST":
            return 201, copy.deepcopy(self.objects.create(resource, space, sent))
        return 200, copy.deepcopy(self.objects.update(resource, space, name, sent))

    # Watches.

    def refuse_watch(self, path, wishes, headers):
        """None, where it may begin."""
        match = PATH.match(path)
        self.asked.set()
        with self.lock:
            self.requests.append(("WATCH", path, None))
            self.watches += 1
            self.changed.notify_all()
            try:
                if headers.get("authorization") not in {f"Bearer {token}" for token in self.tokens}:
                    raise Refusal(401, "Unauthorized", "Unauthorized")
                if match is None or match[4] or wishes.get("watch") != "true":
                    raise Refusal(404, "NotFound", "the server could not find the requested resource")
                selector = wishes.get("fieldSelector", "")
                self.authorize("watch", match[3], match[2], selector.removeprefix("metadata.name=") if selector else None)
            except Refusal as refusal:
                return refusal
        return None

    def events_of(self, path, wishes):
        """Until the time is over. One that begins before what is kept is told so, and ends."""
        _, space, resource, _ = PATH.match(path).groups()
        name = wishes["fieldSelector"].removeprefix("metadata.name=")
        version, end = int(wishes.get("resourceVersion") or 0), time.monotonic() + int(wishes.get("timeoutSeconds", 60))
        while time.monotonic() < end:
            with self.lock:
                if version < self.objects.oldest:
                    gone = Refusal(410, "Expired", f"too old resource version: {version} ({self.objects.oldest})")
                    events, version = [{"type": "ERROR", "object": gone.status}], None
                else:
                    events = [{"type": change, "object": found} for revision, change, *where, found in self.objects.changes
                              if revision > version and where == [resource, space, name]]  # fmt: skip
                    version = self.objects.revision
                    if not events and self.changed.wait(min(0.5, max(0, end - time.monotonic()))):
                        continue
            yield from events
            if version is None:
                return
            if self.sends_bookmarks:
                kind = {"kind": KINDS[resource][1], "apiVersion": KINDS[resource][0]}
                yield {"type": "BOOKMARK", "object": {**kind, "metadata": {"resourceVersion": str(version)}}}

    def forget_changes(self):
        """What etcd's compaction does: a watch cannot begin before now."""
        with self.lock:
            self.objects.changes.clear()
            self.objects.oldest = self.objects.revision = self.objects.revision + 1

    def authorize(self, verb, resource, space, name):
        may = any((GROUPS[resource], resource, restriction, verb) in self.role for restriction in ("", name))
        if (verb, resource) in self.forbidden or not may:
            called = f'"{name}" ' if name else ""
            raise Refusal(403, "Forbidden", f'{resource} {called}is forbidden: User "{ACCOUNT}" cannot {verb} resource '
                          f'"{resource}" in API group "{GROUPS[resource]}" in the namespace "{space}"')  # fmt: skip

    # What somebody else does with kubectl.

    def put(self, resource, space, name, **parts):
        with self.lock:
            self.objects.keep(resource, space, name, {"metadata": {"name": name, "namespace": space, "uid": str(uuid.uuid4()),
                              "creationTimestamp": "2026-11-23T05:00:00Z", **parts.pop("metadata", {})}, **parts})  # fmt: skip
            self.changed.notify_all()

    def annotate(self, resource, space, name, count):
        with self.lock:
            found = copy.deepcopy(self.objects.objects[resource, space, name])
            found["metadata"]["annotations"] = {"count": count}
            self.objects.keep(resource, space, name, found)
            self.changed.notify_all()

    def delete(self, resource, space, name):
        with self.lock:
            self.objects.remove(resource, space, name)
            self.changed.notify_all()

    def find(self, resource, space, name):
        with self.lock:
            return copy.deepcopy(self.objects.objects.get((resource, space, name)))
