# SPDX-License-Identifier: BSD-3-Clause
"""A real API server of Kubernetes on this machine, over a real etcd: kube-apiserver alone, without a cluster. Its users are an
administrator, by certificate, and a service account that has the Role that is shipped, by token."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from support.binary import ROOT
from support.etcd import Etcd, make_certificates, require_etcd
from support.ports import free_port

ROLE = ROOT / "examples/kubernetes/role.yaml"
VARIABLE = "MUSTER_KUBE_APISERVER"


def require_kube_apiserver():
    """The program that the developer names."""
    program = os.environ.get(VARIABLE)
    if not program:
        pytest.skip(f"{VARIABLE} does not name a kube-apiserver")
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl not found (Debian: apt install kubernetes-client)")
    require_etcd()
    return program


class KubeApiserver:
    """The namespace `ml` has the service account, and its token file is `token_file`."""

    def __init__(self, place, program):
        self.place, self.program, self.process = place, program, None
        self.etcd = Etcd(place, 1)
        make_certificates(place)
        self.openssl("genrsa", "-out", "accounts.key", "2048")
        self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "admin.key", "-out", "admin.request",
                     "-subj", "/O=system:masters/CN=admin")  # fmt: skip
        self.openssl("x509", "-req", "-in", "admin.request", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                     "-days", "3650", "-extfile", "names", "-out", "admin.pem")  # fmt: skip
        self.url = f"https://127.0.0.1:{free_port()}"
        self.token_file = place / "token"
        self.start()
        self.kubectl("create", "namespace", "ml")
        self.kubectl("apply", "-n", "ml", "-f", ROLE)
        self.token_file.write_text(self.make_token(), encoding="utf-8")

    @property
    def conf(self):
        return [f"k8s_server={self.url}", f"k8s_token_file={self.token_file}", f"k8s_ca={self.place}/ca.pem"]

    def openssl(self, *words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self.place, timeout=120)

    def start(self):
        """On the same port as before; returns when it serves."""
        port = self.url.rsplit(":", 1)[1]
        command = [
            self.program, "--etcd-servers", ",".join(self.etcd.urls), "--bind-address", "127.0.0.1", "--secure-port", port,
            "--advertise-address", "127.0.0.1", "--cert-dir", self.place, "--tls-cert-file", f"{self.place}/server.pem",
            "--tls-private-key-file", f"{self.place}/server.key", "--client-ca-file", f"{self.place}/ca.pem",
            "--service-cluster-ip-range", "10.96.0.0/24", "--authorization-mode", "RBAC",
            "--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file",
            f"{self.place}/accounts.key", "--service-account-signing-key-file", f"{self.place}/accounts.key",
        ]  # fmt: skip
        with open(f"{self.place}/kube-apiserver.log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.place)
        for _ in range(600):
            if self.try_kubectl("get", "--raw", "/readyz").returncode == 0:
                return
            assert self.process.poll() is None, (self.place / "kube-apiserver.log").read_text(encoding="utf-8")
            time.sleep(0.2)
        pytest.fail(f"the API server does not become ready: see {self.place}/kube-apiserver.log")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=60)

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self.etcd.end()

    # What an administrator does.

    def try_kubectl(self, *words, sent=None):
        words = ["--kubeconfig", "/dev/null", "--server", self.url, "--certificate-authority", f"{self.place}/ca.pem",
                 "--client-certificate", f"{self.place}/admin.pem", "--client-key", f"{self.place}/admin.key",
                 "--cache-dir", f"{self.place}/kubectl", *map(str, words)]  # fmt: skip
        return subprocess.run(["kubectl", *words], input=sent, capture_output=True, text=True, timeout=60)

    def kubectl(self, *words, sent=None):
        end = self.try_kubectl(*words, sent=sent)
        assert end.returncode == 0, end
        return end.stdout

    def find(self, resource, space, name):
        return json.loads(self.kubectl("get", resource, "-n", space, name, "-o", "json"))

    def may(self, verb, resource, space):
        """Whether the service account is allowed to: what was granted holds a little later."""
        words = ["auth", "can-i", verb, resource, "-n", space, "--as", "system:serviceaccount:ml:train"]
        return self.try_kubectl(*words).returncode == 0

    def make_token(self, account="train"):
        """As the kubelet asks for one."""
        sent = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 36000}}
        path = f"/api/v1/namespaces/ml/serviceaccounts/{account}/token"
        return json.loads(self.kubectl("create", "--raw", path, "-f", "-", sent=json.dumps(sent)))["status"]["token"]
